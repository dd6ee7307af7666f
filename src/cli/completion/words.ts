import { plants } from '../commands/index.js'
import type { CommandDefinition, OptionDefinition } from '../define-command.js'
import { helpOption } from '../help/page.js'

/** What the words in front of the cursor say. */
export interface ParsedWords {
  /** the commands that they lead to, from the program on */
  path: CommandDefinition[]
  /** the arguments of the last command; after `help`, words that are no command */
  operands: string[]
  given: Set<OptionDefinition>
  /** the option whose value comes next */
  pending: OptionDefinition | undefined
  /** after `help`, where words name commands */
  isHelp: boolean
  /** after `--`, where nothing is an option any more */
  optionsEnded: boolean
}

/** Parses words as the command line will, without errors: people are still writing. */
export function parseWords(words: readonly string[]): ParsedWords {
  const parsed: ParsedWords = { path: [plants], operands: [], given: new Set(), pending: undefined, isHelp: false, optionsEnded: false }
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
  const next = commands?.find(({ name }) => name === word)
  if (next) parsed.path.push(next)
  else if (word === 'help' && commands && !parsed.isHelp) parsed.isHelp = true
  else parsed.operands.push(word)
}

/** The options that can be given here, those of the command first. */
export function optionsAt({ path, isHelp }: ParsedWords): OptionDefinition[] {
  const own = isHelp ? [] : (path.slice(1).at(-1)?.options ?? [])
  return [...own, ...(plants.options ?? []), helpOption]
}

export function findOption(name: string, parsed: ParsedWords): OptionDefinition | undefined {
  return optionsAt(parsed).find((option) => namesOf(option).includes(name))
}

/** `-v` and `--verbose` for `-v, --verbose`. */
export function namesOf({ flags }: OptionDefinition): string[] {
  return flags.replace(/ [<[].*/, '').split(', ')
}

export function takesValue({ flags }: OptionDefinition): boolean {
  return flags.includes('<')
}
