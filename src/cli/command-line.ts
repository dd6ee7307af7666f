import { type CommandDefinition, commandFor, globalOptions, helpOption, type OptionDefinition } from './define-command.js'

/** A command line as far as it can be parsed without commander: for help, completion, and the message about an invalid one. */
export interface CommandLine {
  /** the names of the command and of its parent, without the program */
  names: string[]
  /** the last command that the words name, or the program */
  command: CommandDefinition
  /** the arguments of the command; after `help`, words that are not commands */
  operands: string[]
  /** the given options by their long names, with their values */
  given: Map<string, string | undefined>
  /** the long name of the first option with a value that was given twice */
  repeated: string | undefined
  /** the options that cannot be given where they are, with words that may be their values */
  unknown: string[]
  /** the last option, if its value is missing */
  pending: OptionDefinition | undefined
  /** after `help`, where words name commands */
  isHelp: boolean
  /** after `--`, which ends the options */
  optionsEnded: boolean
}

export function parseCommandLine(words: readonly string[], program: CommandDefinition): CommandLine {
  const parsed: CommandLine = {
    names: [],
    command: program,
    operands: [],
    given: new Map(),
    repeated: undefined,
    unknown: [],
    pending: undefined,
    isHelp: false,
    optionsEnded: false,
  }
  for (const word of words) {
    if (parsed.pending) {
      parsed.given.set(longName(parsed.pending), word)
      parsed.pending = undefined
    } else if (parsed.optionsEnded) parsed.operands.push(word)
    else if (word === '--') parsed.optionsEnded = true
    else if (/^-./.test(word) && !isNegativeNumber(word, parsed)) addOption(word, parsed)
    else addOperand(word, parsed)
  }
  return parsed
}

/** Whether it is an argument, not an option, as commander has it. */
function isNegativeNumber(word: string, { command }: CommandLine): boolean {
  return !command.commands && /^-(\d+|\d*\.\d+)(e[+-]?\d+)?$/.test(word)
}

/** Adds `--name`, `--name=Fern`, `-n`, `-nFern`, or several switches such as `-yq`. */
function addOption(word: string, parsed: CommandLine): void {
  const isLong = word.startsWith('--')
  const [name = '', value] = isLong ? word.split(/=(.*)/s) : [word.slice(0, 2), word.slice(2) || undefined]
  const option = findOption(name, parsed)
  if (!option || (isLong && value !== undefined && !takesValue(option))) {
    parsed.unknown.push(word)
    return
  }
  if (takesValue(option) && parsed.given.has(longName(option))) parsed.repeated ??= longName(option)
  parsed.given.set(longName(option), value)
  if (!takesValue(option) && value !== undefined) addOption(`-${value}`, parsed)
  if (takesValue(option) && value === undefined) parsed.pending = option
}

function addOperand(word: string, parsed: CommandLine): void {
  const commands = parsed.operands.length === 0 ? parsed.command.commands : undefined
  const next = commandFor(word, commands)
  if (next) {
    parsed.command = next
    parsed.names.push(next.name)
  } else if (word === 'help' && commands) parsed.isHelp = true
  else if (commands && parsed.unknown.length > 0) parsed.unknown.push(word)
  else parsed.operands.push(word)
}

/** The options that can be given here, those of the command first. */
export function optionsAt({ command, isHelp }: Pick<CommandLine, 'command' | 'isHelp'>): OptionDefinition[] {
  return [...(isHelp ? [] : (command.options ?? [])), ...globalOptions, helpOption]
}

export function findOption(name: string, parsed: CommandLine): OptionDefinition | undefined {
  return optionsAt(parsed).find((option) => namesOf(option).includes(name))
}

export function namesOf({ flags }: OptionDefinition): string[] {
  return flags.replace(/ <.*/, '').split(', ')
}

export function longName(option: OptionDefinition): string {
  return namesOf(option).at(-1) ?? ''
}

export function takesValue({ flags }: OptionDefinition): boolean {
  return flags.includes('<')
}
