import { PlantsError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { sqliteOpener } from '../stores/registry.js'
import type { GlobalOptions } from './command.js'
import { CommandContext } from './command-context.js'

type StoredWord = readonly [word: string, meaning: string]

/**
 * The ids or tags that begin with a text, for a completion, which must not wait: those of the first plants of a store on
 * this machine. A failure only means fewer of them; the next command reports it.
 */
export async function storedWords(
  field: 'id' | 'tag',
  text: string,
  options: GlobalOptions,
  io: Io,
): Promise<StoredWord[]> {
  try {
    const { address, sqliteOptions } = await CommandContext.from({ ...options, quiet: true }, io)
    if (address.scheme !== 'sqlite') return []
    const store = await sqliteOpener(address, { ...sqliteOptions, timeout: 100 }).openExisting()
    const found = new Map<string, string>()
    try {
      for await (const plants of store?.read({ limit: maxRead, inPages: true }) ?? [])
        for (const { id, name, tag } of plants) {
          const word = field === 'id' ? String(id) : tag
          if (found.size === maxWords) break
          if (word?.startsWith(text) && plainWord.test(word)) found.set(word, field === 'id' ? shorten(name) : '')
        }
    } finally {
      await store?.close()
    }
    return [...found]
  } catch (error) {
    if (error instanceof PlantsError) return []
    throw error
  }
}

const maxRead = 10_000
const maxWords = 100

/** What no shell has to quote, and no command takes for an option. */
const plainWord = /^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_./+-]*$/u
