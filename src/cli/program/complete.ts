import { type Command, CommanderError, type Option } from 'commander'
import { readSettings, type SavedSettings } from '../../config/file.js'
import { namedStores, shownValue } from '../../config/resolve.js'
import { isFor, type Scope, settingNames, settingOf, settingsIn } from '../../config/table.js'
import { writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { printable } from '../../platform/redact.js'
import type { Values } from '../../platform/values.js'
import { schemeOfText } from '../../stores/registry.js'
import { topics } from '../commands/index.js'
import { type Program, subcommandOf } from './program.js'

/** The completions of a word. Each shell filters them in its own way by the text that was typed. */
interface Completions {
  candidates: readonly Candidate[]
  /** the text before each candidate in the word, such as `--output=` */
  prefix: string
  /** the files that the shell offers in addition: none, all, or those with one of these extensions, separated by spaces */
  files: 'none' | 'any' | 'db sqlite'
}

/** A word that ends with a dot is incomplete: the shell adds no space after it. */
type Candidate = [word: string, meaning: string]

const nothing: Completions = { candidates: [], prefix: '', files: 'none' }
const anyFile: Completions = { ...nothing, files: 'any' }

interface ValueContext {
  /** the part of the value that was typed */
  text: string
  operands: readonly string[]
  io: Io
}

/** Where a command line ends. */
interface Line {
  command: Command
  /** the arguments of the command */
  operands: string[]
  /** the option whose value is missing */
  pending?: Option | undefined
  /** after `help`, where words name commands */
  isHelp: boolean
}

/**
 * Prints the completions of the last word for the script of a shell. The first line has the files that the shell offers in addition (`none`,
 * `any`, or extensions) and, after a tab, the prefix of each candidate. Each other line has a candidate and, after a tab, its meaning.
 */
export async function printCompletions(words: string[], program: Program, io: Io): Promise<void> {
  const { files, prefix, candidates } = await complete(words, program, io)
  const lines = [[files, prefix], ...candidates].map((fields) => `${fields.map((field) => printable(field, io)).join('\t')}\n`)
  await writeAnswer(io, lines.join(''))
}

async function complete(words: string[], program: Program, io: Io): Promise<Completions> {
  const [before, text = ''] = [words.slice(0, -1), words.at(-1)]
  if (before.includes('--')) return nothing
  try {
    return await completeAt(await parseLine(before, program), text, program, io)
  } catch (error) {
    if (error instanceof PlantsError) return nothing // for a line that is invalid already
    throw error
  }
}

/** Commander parses the options of one command after the other, as if the line was complete. */
async function parseLine(words: string[], program: Program): Promise<Line> {
  let command = program.root
  let rest = words
  try {
    for (;;) {
      const { operands, unknown } = command.parseOptions(rest)
      const [word = '', ...others] = operands
      if (word === 'help' && command.commands.length > 0) return await helpLine(command, [...others, ...unknown], program)
      const below = subcommandOf(command, word)
      if (!below) return { command, operands, isHelp: false }
      await program.load(below)
      command = below
      rest = [...others, ...unknown]
    }
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    const flag = words.at(-1)?.replace(/^-\w*(?=\w$)/, '-') // -f of -yf
    const pending = command.options.find(({ short, long }) => short === flag || long === flag)
    return { command, operands: [], isHelp: false, pending }
  }
}

async function helpLine(parent: Command, words: string[], program: Program): Promise<Line> {
  const [word = '', ...operands] = words
  const command = subcommandOf(parent, word)
  if (!command) return { command: parent, operands: words, isHelp: true }
  await program.load(command)
  return helpLine(command, operands, program)
}

async function completeAt(line: Line, text: string, program: Program, io: Io): Promise<Completions> {
  const { command, operands, pending } = line
  const context = { text, operands, io }
  if (pending) return completeValues(program.values.get(pending), context)
  const [, name, value = ''] = /^(--[^=]+)=(.*)$/s.exec(text) ?? []
  if (name !== undefined) {
    const option = command.options.find(({ long, required }) => required && long === name)
    if (!option) return nothing
    const values = await completeValues(program.values.get(option), { ...context, text: value })
    return { ...values, prefix: `${name}=${values.prefix}` }
  }
  if (text.startsWith('-')) return { ...nothing, candidates: optionCandidates(line, program, /^-[^-]/.test(text)) }
  if (command.commands.length > 0 || line.isHelp) return completeCommand(line, text)
  const argument = command.registeredArguments[operands.length] ?? command.registeredArguments.findLast(({ variadic }) => variadic)
  if (argument) return completeValues(program.values.get(argument), context)
  return text === '' ? { ...nothing, candidates: optionCandidates(line, program, false) } : nothing
}

function completeCommand({ command, operands, isHelp }: Line, text: string): Completions {
  if (operands.length > 0) return nothing
  const below = command.createHelp().visibleCommands(command)
  const named = below.map((each): Candidate => [each.name(), each.summary() || each.description()])
  const shown = isHelp ? named.filter(([name]) => name !== 'help') : named
  if (isHelp && !command.parent) shown.push(...Object.entries(topics))
  if (shown.some(([word]) => word.startsWith(text))) return { ...nothing, candidates: shown }
  const others = below.flatMap((each) => each.aliases().map((word): Candidate => [word, `alias of ${each.name()}`]))
  return { ...nothing, candidates: [...shown, ...others] }
}

/** The options that are not given yet, by their long names or by their short ones. */
function optionCandidates({ command, isHelp }: Line, { root, given, helpOption }: Program, isShort: boolean): Candidate[] {
  return [...(isHelp ? root : command).options, helpOption]
    .filter((option) => !given.has(option.attributeName()))
    .flatMap(({ short, long, description }) => {
      const word = isShort ? short : long
      return word === undefined ? [] : [[word, description] satisfies Candidate]
    })
}

async function completeValues(values: Values | undefined, context: ValueContext): Promise<Completions> {
  const { text, operands, io } = context
  if (values === undefined) return nothing
  if (values === 'file') return anyFile
  if (values === 'setting-value') return completeValues(valuesOf(operands[0] ?? ''), context)
  if (values === 'store') return completeStores(text, io)
  if (values === 'saved-store') return { ...nothing, candidates: storesIn(await savedSettings(io)) }
  if (values === 'setting') return { ...nothing, candidates: settingsFor(text, await savedSettings(io)) }
  return { ...nothing, candidates: values.map((word) => [word, '']) }
}

/** Names and paths of stores. A path without a slash needs the extension of a store. */
async function completeStores(text: string, io: Io): Promise<Completions> {
  const [prefix = ''] = /^(sqlite|unix):/i.exec(text) ?? []
  if (prefix !== '') return { ...anyFile, prefix }
  if (/^(https?|postgres(ql)?):/i.test(text)) return nothing
  if (/^[.~]|\//.test(text)) return anyFile
  const candidates: Candidate[] = [...storesIn(await savedSettings(io)), ['local', 'your own store, which is built in']]
  return { candidates, prefix: '', files: 'db sqlite' }
}

/** Invalid settings only mean fewer candidates; the next command reports them. */
async function savedSettings(io: Io): Promise<SavedSettings> {
  try {
    return (await readSettings(io)).saved
  } catch (error) {
    if (error instanceof PlantsError) return { version: 1 }
    throw error
  }
}

function storesIn(saved: SavedSettings): Candidate[] {
  return namedStores(saved).map(([name, { address }]) => [name, shorten(shownValue(address))])
}

/** The settings of the user and the names of stores; after the name of a store, its settings. */
function settingsFor(text: string, saved: SavedSettings): Candidate[] {
  const meanings = (scope: Scope) => settingsIn(scope).map((name) => [name, settingOf(name).meaning] as const)
  const [store, found] = namedStores(saved).find(([name]) => text.startsWith(`stores.${name}.`)) ?? []
  if (found) {
    const own = meanings('store').filter(([name]) => isFor(name, schemeOfText(found.address)))
    return [['address', 'address of the store'] as const, ...own].map(([name, meaning]) => [`stores.${store}.${name}`, meaning])
  }
  const stores = storesIn(saved).map(([name, meaning]): Candidate => [`stores.${name}.`, `the settings of ${meaning}`])
  return [...meanings('user').map(([name, meaning]): Candidate => [name, meaning]), ...stores]
}

function valuesOf(key: string): Values | undefined {
  const setting = key.replace(/^stores\.[^.]*\./, '')
  if (setting === 'address') return 'file'
  const name = settingNames.find((candidate) => candidate === setting)
  if (name === undefined) return undefined
  return settingOf(name).isSwitch ? ['true', 'false'] : settingOf(name).values
}
