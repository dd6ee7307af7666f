import { readSettings, type SavedSettings } from '../../config/file.js'
import { writeAnswer } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { redact } from '../../platform/redact.js'
import { aliasesOf, type CommandDefinition, commandFor, type OptionDefinition } from '../define-command.js'
import { helpCommand, helpOption } from '../help/page.js'
import { type Candidate, type Completions, candidatesOnly, completeValues, nothing, type ValueContext } from './values.js'

/**
 * Prints the completions of the last word for the script of a shell. The first line has the files that the shell offers in addition (`none`,
 * `any`, or extensions) and, after a tab, the prefix of each candidate. Each other line has a candidate and, after a tab, its meaning.
 */
export async function printCompletions(words: string[], program: CommandDefinition, io: Io): Promise<void> {
  const { files, prefix, candidates } = await complete(words, program, () => savedSettings(io))
  const first = `${typeof files === 'string' ? files : files.join(' ')}\t${prefix}\n`
  const lines = candidates.map(({ word, meaning }) => `${word}\t${meaning}\n`)
  await writeAnswer(io, redact([first, ...lines].join(''), io))
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

async function complete(words: string[], program: CommandDefinition, saved: () => Promise<SavedSettings>): Promise<Completions> {
  const text = words.at(-1) ?? ''
  const parsed = parseWords(words.slice(0, -1), program)
  const { operands, pending } = parsed
  if (pending) return completeValues(pending.choices ?? pending.values, { text, operands, saved })
  if (parsed.optionsEnded) return nothing
  const [, name, value = ''] = /^(--[^=]+=)(.*)$/s.exec(text) ?? []
  if (name !== undefined) {
    const option = findOption(name.slice(0, -1), parsed)
    if (!option || !takesValue(option)) return nothing
    const values = await completeValues(option.choices ?? option.values, { text: value, operands, saved })
    return { ...values, prefix: `${name}${values.prefix}` }
  }
  if (text.startsWith('-')) return candidatesOnly(optionCandidates(parsed, text))
  return completeOperand(parsed, { text, operands, saved })
}

async function completeOperand(parsed: ParsedWords, context: ValueContext): Promise<Completions> {
  const { path, operands, isHelp } = parsed
  const { commands, arguments: args = [], topics = [] } = path.at(-1) ?? {}
  if (commands || isHelp) {
    const named = (commands ?? []).map(({ name, summary, description }) => ({ word: name, meaning: summary ?? description }))
    const others = (isHelp ? topics : [helpCommand]).map(({ name, meaning }) => ({ word: name, meaning }))
    const all = [...named, ...others]
    const short = (commands ?? []).flatMap((command) => aliasesOf(command).map((word) => ({ word, meaning: `alias of ${command.name}` })))
    const isFound = all.some(({ word }) => word.startsWith(context.text))
    return operands.length > 0 ? nothing : candidatesOnly(isFound ? all : [...all, ...short])
  }
  const argument = args[operands.length] ?? args.findLast(({ name }) => name.includes('...'))
  if (argument) return completeValues(argument.values, context)
  return context.text === '' ? candidatesOnly(optionCandidates(parsed, '--')) : nothing
}

/** Long options, or short ones after a single dash. */
function optionCandidates(parsed: ParsedWords, text: string): Candidate[] {
  const isShort = /^-[^-]/.test(text)
  return optionsAt(parsed)
    .filter((option) => !parsed.given.has(option))
    .flatMap((option) => namesOf(option).map((word) => ({ word, meaning: option.description })))
    .filter(({ word }) => word.startsWith('--') !== isShort)
}

interface ParsedWords {
  /** the program, and the commands that the words name */
  path: CommandDefinition[]
  /** the arguments of the last command; after `help`, words that are not commands */
  operands: string[]
  given: Set<OptionDefinition>
  pending: OptionDefinition | undefined
  /** after `help`, where words name commands */
  isHelp: boolean
  /** after `--`, which ends the options */
  optionsEnded: boolean
}

/** Parses the words of an incomplete command line, without errors. */
function parseWords(words: string[], program: CommandDefinition): ParsedWords {
  const parsed: ParsedWords = { path: [program], operands: [], given: new Set(), pending: undefined, isHelp: false, optionsEnded: false }
  for (const word of words) {
    if (parsed.pending) parsed.pending = undefined
    else if (parsed.optionsEnded) parsed.operands.push(word)
    else if (word === '--') parsed.optionsEnded = true
    else if (/^-./.test(word)) addOption(word, parsed)
    else addOperand(word, parsed)
  }
  return parsed
}

function addOption(word: string, parsed: ParsedWords): void {
  const option = findOption(word.replace(/=.*/s, ''), parsed)
  if (option) parsed.given.add(option)
  if (option && takesValue(option) && !word.includes('=')) parsed.pending = option
}

function addOperand(word: string, parsed: ParsedWords): void {
  const commands = parsed.operands.length === 0 ? parsed.path.at(-1)?.commands : undefined
  const next = commandFor(word, commands)
  if (next) parsed.path.push(next)
  else if (word === 'help' && commands && !parsed.isHelp) parsed.isHelp = true
  else parsed.operands.push(word)
}

/** The options that can be given here, those of the command first. */
function optionsAt({ path: [program, ...below], isHelp }: ParsedWords): OptionDefinition[] {
  const own = isHelp ? [] : (below.at(-1)?.options ?? [])
  return [...own, ...(program?.options ?? []), helpOption]
}

function findOption(name: string, parsed: ParsedWords): OptionDefinition | undefined {
  return optionsAt(parsed).find((option) => namesOf(option).includes(name))
}

/** `-v` and `--verbose` for `-v, --verbose`. */
function namesOf({ flags }: OptionDefinition): string[] {
  return flags.replace(/ [<[].*/, '').split(', ')
}

function takesValue({ flags }: OptionDefinition): boolean {
  return flags.includes('<')
}
