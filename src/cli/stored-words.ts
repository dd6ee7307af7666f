import { PlantsError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import type { Store } from '../stores/common/store.js'
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
    if (!store) return []
    try {
      return await wordsIn(store, field, text, io)
    } finally {
      await store.close()
    }
  } catch (error) {
    if (error instanceof PlantsError) return []
    throw error
  }
}

async function wordsIn(
  store: Store,
  field: 'id' | 'tag',
  text: string,
  { now }: Io,
): Promise<StoredWord[]> {
  const found = new Map<string, string>()
  const end = now() + maxTime
  for await (const plants of store.read({ limit: maxRead, inPages: true })) {
    for (const { id, name, tag } of plants) {
      const word = field === 'id' ? String(id) : tag
      if (found.size === maxWords) break
      if (word?.startsWith(text) && plainWord.test(word))
        found.set(word, field === 'id' ? shorten(name) : '')
    }
    if (found.size === maxWords || now() > end) break
  }
  return [...found]
}

const maxRead = 10_000
const maxWords = 100

/** In milliseconds: the first plants may have long texts. */
const maxTime = 500

/** What no shell has to quote, and no command takes for an option. For 500,000 letters, bash takes half a minute. */
const plainWord = /^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_./+-]{0,99}$/u
