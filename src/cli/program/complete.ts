import { type Argument, type Command, CommanderError, type Option } from 'commander'
import { namedStores, shownStore } from '../../config/resolve.js'
import { type Scope, settingNames, settingOf, settingsIn } from '../../config/setting-table.js'
import { readSettings, type SavedSettings } from '../../config/settings-file.js'
import { writeAnswer } from '../../output/output.js'
import type { NewPlant } from '../../plant/fields.js'
import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { printable } from '../../platform/redact.js'
import type { StoredValues, Values } from '../../platform/values.js'
import type { OwnStore, Token } from '../../stores/common/store.js'
import { ownSchemeOf, takesCredential } from '../../stores/registry.js'
import { topics } from '../commands/index.js'
import { resolveSettings } from '../context.js'
import { globalFlagsIn, type Program, subcommandOf } from './program.js'

/** Each shell filters them by the typed text in its own way. */
interface Completions {
  candidates: readonly Candidate[]
  /** before each candidate in the word, such as `--output=` */
  prefix: string
  /** offered by the shell in addition */
  files: 'none' | 'any'
}

type Candidate = [word: string, meaning: string]

const nothing: Completions = { candidates: [], prefix: '', files: 'none' }
const anyFile: Completions = { ...nothing, files: 'any' }

/**
 * For the script of a shell, prints a line of `files`, a tab and `prefix`, then each candidate, a tab and its meaning.
 */
export async function printCompletions(words: string[], program: Program, io: Io): Promise<void> {
  const { files, prefix, candidates } = await complete(words.slice(0, -1), words.at(-1) ?? '', program, io)
  const lines = [[files, prefix], ...candidates].map(
    (fields) => `${fields.map((field) => printable(field, io)).join('\t')}\n`,
  )
  await writeAnswer(io, lines.join(''))
}

async function complete(before: string[], text: string, program: Program, io: Io): Promise<Completions> {
  if (before.includes('--')) return nothing
  try {
    return await completeAt(await parseLine(before, program), text, program, io)
  } catch (error) {
    if (error instanceof PlantsError) return nothing // for a line that is invalid already
    throw error
  }
}

interface Line {
  words: string[]
  command: Command
  operands: string[]
  /** after `help`, where words only name commands */
  isHelp: boolean
  /** whose value is missing */
  pending?: Option | undefined
}

/** Commander parses the options of one command after the other, as if the line was complete. */
async function parseLine(words: string[], program: Program): Promise<Line> {
  let command = program.root
  let rest = words
  let isHelp = false
  try {
    for (;;) {
      const { operands, unknown } = command.parseOptions(rest)
      const [word = '', ...others] = operands
      const below = subcommandOf(command, word)
      if (word === 'help' && command.commands.length > 0) isHelp = true
      else if (!below) return { words, command, operands, isHelp }
      else {
        await program.load(below)
        command = below
      }
      rest = [...others, ...unknown]
    }
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    const flag = words.at(-1)?.replace(/^-\w*(?=\w$)/, '-') // -f of -yf
    const pending = command.options.find(({ short, long }) => short === flag || long === flag)
    program.given.clear()
    const { operands } = pending ? command.parseOptions(rest.slice(0, -1)) : { operands: [] }
    return { words, command, operands, isHelp, pending }
  }
}

async function completeAt(line: Line, text: string, program: Program, io: Io): Promise<Completions> {
  const { command, operands, isHelp, pending } = line
  const valuesOf = (of: Option | Argument, part: string) => completeValues(program.values.get(of), part, line, io)
  if (pending) return valuesOf(pending, text)
  const { name, value = '' } = /^(?<name>--[^=]+)=(?<value>.*)$/s.exec(text)?.groups ?? {}
  if (name !== undefined) {
    const option = command.options.find(({ long, required }) => required && long === name)
    if (!option) return nothing
    const values = await valuesOf(option, value)
    return { ...values, prefix: `${name}=${values.prefix}` }
  }
  if (text.startsWith('-')) return { ...nothing, candidates: optionCandidates(command, program, /^-[^-]/.test(text)) }
  if (command.commands.length > 0 && operands.length === 0) return { ...nothing, candidates: commandCandidates(line) }
  if (command.commands.length > 0 || isHelp) return nothing
  const next = command.registeredArguments[operands.length]
  const argument = next ?? command.registeredArguments.findLast(({ variadic }) => variadic)
  const found = argument ? await valuesOf(argument, text) : nothing
  if (next || found !== nothing) return found
  return text === '' ? { ...nothing, candidates: optionCandidates(command, program, false) } : nothing
}

function commandCandidates({ command, isHelp }: Line): Candidate[] {
  const below = command.createHelp().visibleCommands(command)
  const named = below.map((each): Candidate => [each.name(), each.summary() || each.description()])
  if (!isHelp) return named
  const topicsHere = command.parent ? [] : Object.entries(topics)
  return [...named.filter(([name]) => name !== 'help'), ...topicsHere]
}

function optionCandidates({ options }: Command, { given, helpOption }: Program, isShort: boolean): Candidate[] {
  return [...options, helpOption]
    .filter((option) => !given.has(option.attributeName()))
    .flatMap(({ short, long, description }) => {
      const word = isShort ? short : long
      return word === undefined ? [] : [[word, description] satisfies Candidate]
    })
}

async function completeValues(values: Values | undefined, text: string, line: Line, io: Io): Promise<Completions> {
  if (values === undefined) return nothing
  if (values === 'file') return anyFile
  if (values === 'setting-value') return completeValues(valuesOfSetting(line.operands[0] ?? ''), text, line, io)
  if (values === 'store') return completeStores(text, io)
  if (values === 'saved-store') return { ...nothing, candidates: await savedStores(io) }
  if (values === 'setting') return { ...nothing, candidates: settingsFor(await savedSettings(io)) }
  if (values === 'id' || values === 'tag' || values === 'token')
    return candidatesIn(await fileOf(line.words, io), values)
  return { ...nothing, candidates: values.map((word) => [word, '']) }
}

/** Undefined for a service and a database: those could ask for a password, or take long. */
async function fileOf(words: string[], io: Io): Promise<OwnStore | undefined> {
  const file = await readSettings(io)
  const { store, storeOptions } = await resolveSettings(globalFlagsIn(words), io, { file, ignoresInvalid: true })
  if (takesCredential(store)) return undefined
  return ownSchemeOf(store).openExisting(store, { ...storeOptions, timeout: 50, onExposed: async () => undefined })
}

async function candidatesIn(store: OwnStore | undefined, what: StoredValues): Promise<Completions> {
  const found = new Map<string, string>()
  const pages =
    what === 'token' ? store?.tokens.list() : store?.read({ limit: what === 'id' ? maxStored : 1000, inPages: true })
  try {
    for await (const page of pages ?? [])
      for (const [word, meaning] of page.flatMap((one) => candidateOf(one, what))) found.set(word, meaning)
  } finally {
    await store?.close()
  }
  return found.size === 0 ? nothing : { ...nothing, candidates: [...found].slice(0, maxStored) }
}

/** None for a revoked token, and for a tag that a shell would have to quote. */
function candidateOf(one: Token | NewPlant, what: StoredValues): Candidate[] {
  const id = String(one.id)
  if (!('name' in one)) return one.revokedAt ? [] : [[id, one.note ?? '']]
  if (what === 'id') return [[id, shorten(one.name)]]
  const { tag = '' } = one
  return isPlain(tag) ? [[tag, '']] : []
}

/** A shell need not quote it. */
function isPlain(word: string): boolean {
  return /^[\p{L}\p{N}_][\p{L}\p{N}_.-]*$/u.test(word)
}

const maxStored = 50

async function completeStores(text: string, io: Io): Promise<Completions> {
  const [prefix = ''] = /^(sqlite|unix):/i.exec(text) ?? []
  if (/^(https?|postgres(ql)?):/i.test(text)) return nothing
  if (prefix !== '' || /^[.~]|\//.test(text)) return { ...anyFile, prefix }
  const candidates: Candidate[] = [...(await savedStores(io)), ['local', 'your own store, which is built in']]
  return { ...anyFile, candidates }
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

async function savedStores(io: Io): Promise<Candidate[]> {
  const stores = namedStores(await savedSettings(io))
  return Promise.all(
    stores.map(async ([name, { address }]): Promise<Candidate> => [name, shorten(await shownStore(address, io))]),
  )
}

function settingsFor(saved: SavedSettings): Candidate[] {
  const known = (scope: Scope, prefix = '') =>
    settingsIn(scope).map((name): Candidate => [prefix + name, settingOf(name).meaning])
  const ofStores = namedStores(saved).flatMap(([store]): Candidate[] => [
    [`stores.${store}.address`, 'address of the store'],
    ...known('store', `stores.${store}.`),
  ])
  return [...known('user'), ...ofStores]
}

function valuesOfSetting(key: string): Values | undefined {
  const setting = key.replace(/^stores\.[^.]*\./, '')
  if (setting === 'address') return 'file'
  const name = settingNames.find((candidate) => candidate === setting)
  if (name === undefined) return undefined
  return settingOf(name).isSwitch ? ['true', 'false'] : settingOf(name).values
}
