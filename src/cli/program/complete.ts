import type { Argument, Command, Option } from 'commander'
import { namedStores, shownStore } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { printable, shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { loadCommand } from '../command.js'
import { topics } from '../commands/help.js'
import { programOf } from './program.js'

/** Each shell filters them by the typed text in its own way. */
interface Completions {
  candidates: readonly Candidate[]
  /** before each candidate in the word, such as `--output=` */
  prefix?: string
  /** the shell offers files, too */
  files?: true
}

type Candidate = readonly [word: string, meaning: string]

const nothing: Completions = { candidates: [] }

/**
 * For the script of a shell, prints a line of `any` or `none` for files, a tab and the prefix, then each candidate, a tab
 * and its meaning.
 *
 * @param words the last one is being typed
 */
export async function printCompletions(words: string[], io: Io): Promise<void> {
  const { candidates, prefix = '', files } = await complete(words.slice(0, -1), words.at(-1) ?? '', io)
  const lines = [[files ? 'any' : 'none', prefix], ...candidates]
  await writeAnswer(io, lines.map((fields) => `${fields.map((field) => printable(field, io)).join('\t')}\n`).join(''))
}

async function complete(before: string[], text: string, io: Io): Promise<Completions> {
  if (before.includes('--')) return nothing
  const { command, operands, pending } = await readLine(before, io)
  if (pending) return valuesOf(pending, text, io)
  const { flag, value = '' } = /^(?<flag>--[^=]+)=(?<value>.*)$/s.exec(text)?.groups ?? {}
  if (flag !== undefined) {
    const option = optionOf(command, flag)
    const values = option?.required ? await valuesOf(option, value, io) : nothing
    return values === nothing ? nothing : { ...values, prefix: `${flag}=${values.prefix ?? ''}` }
  }
  if (text.startsWith('-')) return { candidates: optionsOf(command, before, /^-[^-]/.test(text)) }
  if (command.commands.length > 0) return operands.length === 0 ? { candidates: commandsOf(command) } : nothing
  if (command.name() === 'help') return operands.length === 0 ? { candidates: helpWords(command) } : nothing
  const { registeredArguments } = command
  const argument = registeredArguments[operands.length] ?? registeredArguments.find(({ variadic }) => variadic)
  if (argument) return valuesOf(argument, text, io)
  return text === '' ? { candidates: optionsOf(command, before, false) } : nothing
}

interface Line {
  command: Command
  operands: string[]
  /** whose value is missing */
  pending?: Option | undefined
}

async function readLine(words: string[], io: Io): Promise<Line> {
  const line: Line = { command: programOf(io), operands: [] }
  for (const word of words) {
    const below = line.command.commands.find((each) => each.name() === word || each.aliases().includes(word))
    if (line.pending) line.pending = undefined
    else if (word.startsWith('-')) line.pending = [optionOf(line.command, word)].find((option) => option?.required)
    else if (below && line.operands.length === 0) {
      await loadCommand(below, io)
      line.command = below
    } else line.operands.push(word)
  }
  return line
}

function optionOf({ options }: Command, word: string): Option | undefined {
  return options.find(({ short, long }) => short === word || long === word)
}

function optionsOf({ options }: Command, before: string[], isShort: boolean): Candidate[] {
  const all = [...options, { short: '-h', long: '--help', description: 'show this help' }]
  return all
    .filter(({ short, long }) => ![short, long].some((flag) => flag !== undefined && before.includes(flag)))
    .flatMap(({ short, long, description }) => {
      const flag = isShort ? short : long
      return flag === undefined ? [] : [[flag, description] as const]
    })
}

function commandsOf(command: Command): Candidate[] {
  return command.commands.map((each) => [each.name(), each.summary() || each.description()] as const)
}

function helpWords({ parent }: Command): Candidate[] {
  const words = Object.entries(topics).map(([name, { summary }]) => [name, summary] as const)
  return [...(parent ? commandsOf(parent) : []).filter(([name]) => name !== 'help'), ...words]
}

/** By the choices of an option or argument, or the name of its value. */
async function valuesOf(of: Option | Argument, text: string, io: Io): Promise<Completions> {
  if (of.argChoices) return { candidates: of.argChoices.map((word) => [word, ''] as const) }
  const name = 'flags' in of ? /<(?<name>\w+)/.exec(of.flags)?.groups?.['name'] : of.name()
  if (name === 'file' || name === 'files' || name === 'path') return { candidates: [], files: true }
  if (name !== 'address' && name !== 'store') return nothing
  const { scheme } = /^(?<scheme>sqlite|unix):/i.exec(text)?.groups ?? {}
  if (/^(https?|postgres(ql)?):/i.test(text)) return nothing
  if (scheme !== undefined || /^[.~]|\//.test(text))
    return { candidates: [], files: true, prefix: scheme === undefined ? '' : `${scheme}:` }
  return { candidates: [...(await savedStores(io)), ['local', 'your own store, which is built in']], files: true }
}

/** Invalid settings only mean fewer candidates; the next command reports them. */
async function savedStores(io: Io): Promise<Candidate[]> {
  try {
    const { saved } = await readSettings(io)
    const named = namedStores(saved).map(
      async ([name, { address }]) => [name, shorten(await shownStore(address, io))] as const,
    )
    return await Promise.all(named)
  } catch (error) {
    if (error instanceof PlantsError) return []
    throw error
  }
}
