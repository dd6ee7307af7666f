import { plants } from '../commands/index.js'
import { helpFlag } from '../help/page.js'
import type { CommandSpec, Flag } from '../spec.js'

/** What the words in front of the cursor say. */
export interface Reading {
  /** the commands that they lead to, from the program on */
  path: CommandSpec[]
  /** the arguments of the last command; behind `help`, words that are no command */
  operands: string[]
  given: Set<Flag>
  /** the flag whose value comes next */
  asking: Flag | undefined
  /** behind `help`, where words name commands and ask nothing of them */
  isHelp: boolean
  /** behind `--`, where nothing is a flag any more */
  isOver: boolean
}

/** Reads words as the command line will. It knows no wrong ones: people are still writing. */
export function readWords(words: readonly string[]): Reading {
  const reading: Reading = { path: [plants], operands: [], given: new Set(), asking: undefined, isHelp: false, isOver: false }
  for (const word of words) readWord(word, reading)
  return reading
}

function readWord(word: string, reading: Reading): void {
  if (reading.asking) reading.asking = undefined
  else if (reading.isOver) reading.operands.push(word)
  else if (word === '--') reading.isOver = true
  else if (/^-./.test(word)) readFlag(word, reading)
  else readOperand(word, reading)
}

function readFlag(word: string, reading: Reading): void {
  const flag = flagCalled(word.replace(/=.*/s, ''), reading)
  if (!flag) return
  reading.given.add(flag)
  if (takesValue(flag) && !word.includes('=')) reading.asking = flag
}

function readOperand(word: string, reading: Reading): void {
  const commands = reading.operands.length === 0 ? reading.path.at(-1)?.commands : undefined
  const next = commands?.find(({ name }) => name === word)
  if (next) reading.path.push(next)
  else if (word === 'help' && commands && !reading.isHelp) reading.isHelp = true
  else reading.operands.push(word)
}

/** The flags that can stand here, those of the command first. */
export function flagsAt({ path, isHelp }: Reading): Flag[] {
  const own = isHelp ? [] : (path.slice(1).at(-1)?.flags ?? [])
  return [...own, ...(plants.flags ?? []), helpFlag]
}

export function flagCalled(name: string, reading: Reading): Flag | undefined {
  return flagsAt(reading).find((flag) => namesOf(flag).includes(name))
}

/** `-v` and `--verbose` for `-v, --verbose`. */
export function namesOf({ term }: Flag): string[] {
  return term.replace(/ [<[].*/, '').split(', ')
}

export function takesValue({ term }: Flag): boolean {
  return /[<[]/.test(term)
}

/** Whether it can be given, or follow, more than once. */
export function mayRepeat({ term }: { term: string }): boolean {
  return term.includes('...')
}
