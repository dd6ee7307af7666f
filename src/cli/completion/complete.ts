import { readSettings, type SavedSettings } from '../../config/file.js'
import { namedStores, shownValue } from '../../config/resolve.js'
import { isFor, type Scope, settingNames, settingOf, settingsIn } from '../../config/table.js'
import { writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { printable } from '../../platform/redact.js'
import type { Values } from '../../platform/values.js'
import { kindOfText } from '../../stores/registry.js'
import { type CommandLine, findOption, longName, namesOf, optionsAt, parseCommandLine, takesValue } from '../command-line.js'
import { aliasesOf, type CommandDefinition } from '../define-command.js'
import { helpCommand } from '../help/page.js'

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

/**
 * Prints the completions of the last word for the script of a shell. The first line has the files that the shell offers in addition (`none`,
 * `any`, or extensions) and, after a tab, the prefix of each candidate. Each other line has a candidate and, after a tab, its meaning.
 */
export async function printCompletions(words: string[], program: CommandDefinition, io: Io): Promise<void> {
  const text = words.at(-1) ?? ''
  const { files, prefix, candidates } = await complete(text, parseCommandLine(words.slice(0, -1), program), io)
  const lines = [[files, prefix], ...candidates].map((fields) => `${fields.map((field) => printable(field, io)).join('\t')}\n`)
  await writeAnswer(io, lines.join(''))
}

async function complete(text: string, parsed: CommandLine, io: Io): Promise<Completions> {
  const { operands, pending, optionsEnded } = parsed
  if (pending) return completeValues(pending.choices ?? pending.values, { text, operands, io })
  if (optionsEnded) return nothing
  const [, name, value = ''] = /^(--[^=]+)=(.*)$/s.exec(text) ?? []
  if (name !== undefined) {
    const option = findOption(name, parsed)
    if (!option || !takesValue(option)) return nothing
    const values = await completeValues(option.choices ?? option.values, { text: value, operands, io })
    return { ...values, prefix: `${name}=${values.prefix}` }
  }
  if (text.startsWith('-')) return { ...nothing, candidates: optionCandidates(parsed, /^-[^-]/.test(text)) }
  return completeOperand(parsed, { text, operands, io })
}

async function completeOperand(parsed: CommandLine, context: ValueContext): Promise<Completions> {
  const { command, isHelp } = parsed
  const { text, operands } = context
  const { commands, arguments: args = [], topics = [] } = command
  if (commands || isHelp) {
    if (operands.length > 0) return nothing
    const others = isHelp ? topics : [helpCommand]
    const named = [
      ...(commands ?? []).map(({ name, summary, description }): Candidate => [name, summary ?? description]),
      ...others.map(({ name, meaning }): Candidate => [name, meaning]),
    ]
    if (named.some(([word]) => word.startsWith(text))) return { ...nothing, candidates: named }
    const aliases = (commands ?? []).flatMap((below) => aliasesOf(below).map((word): Candidate => [word, `alias of ${below.name}`]))
    return { ...nothing, candidates: [...named, ...aliases] }
  }
  const argument = args[operands.length] ?? args.findLast(({ name }) => name.includes('...'))
  if (argument) return completeValues(argument.values, context)
  return text === '' ? { ...nothing, candidates: optionCandidates(parsed, false) } : nothing
}

/** The options that are not given yet, by their long names or by their short ones. */
function optionCandidates(parsed: CommandLine, isShort: boolean): Candidate[] {
  return optionsAt(parsed)
    .filter((option) => !parsed.given.has(longName(option)))
    .flatMap((option) => namesOf(option).map((word): Candidate => [word, option.description]))
    .filter(([word]) => word.startsWith('--') !== isShort)
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
    const own = meanings('store').filter(([name]) => isFor(name, kindOfText(found.address)))
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
