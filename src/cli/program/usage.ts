import type { Command, CommanderError, Option } from 'commander'
import { malformed, type PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { editsBetween, similar } from '../../platform/nearest.js'
import { topics } from '../commands/index.js'
import { type Program, subcommandOf } from './program.js'

/**
 * The words of other programs, by what they mean here: a command, an option, or a sentence. A word stands alone or
 * after its command. NUMBER is a whole number: the value of an option, or each argument of a command. The first match
 * counts, of options only one that the command has.
 */
export const habits: Readonly<Record<string, readonly string[]>> = {
  'list --search TEXT': ['search', 'find'],
  'list --fields id,name': ['list --columns'],
  count: ['list --count'],
  'update ID --name TEXT': ['edit', 'modify', 'patch', 'put', 'rename'],
  'import FILE': ['load'],
  'export --out FILE': ['dump', 'list --out'],
  'serve --port PORT': ['serve -p', 'serve NUMBER'],
  'auth login': ['login'],
  'auth logout': ['logout'],
  'auth status': ['whoami'],
  'stores use STORE': ['use', 'switch', 'context'],
  'stores list': ['stores current', 'contexts'],
  'stores add NAME ADDRESS': ['stores create', 'stores new'],
  'config unset SETTING': ['config reset'],
  doctor: ['status'],
  help: ['man', 'docs', 'browse', 'feedback'],
  'For a plant: plants update ID --name TEXT. For a setting: plants config set SETTING VALUE': ['set'],
  'For plants by their ids: plants get ID': ['list NUMBER'],
  'For many plants: plants import FILE --if-exists update': ['update NUMBER'],
  'The id is an argument: plants get ID': ['get --id', 'get -i'],
  'The id is an argument: plants delete ID': ['delete --id', 'delete -i'],
  'The id is an argument, and cannot be changed: plants update ID --name TEXT': ['update --id', 'update -i'],
  'To skip or update a plant that exists, import it from stdin. See: plants import --help': [
    'create --if-exists',
    'create --replace',
    'create --upsert',
  ],
  'Name the files without an option: plants import FILE': ['import --file', 'import --input', 'import -f', 'import -i'],
  'There is no descending order': ['list --desc', 'list --descending', 'list --reverse', 'list -r'],
  'Pipe JSON to jq, for example: plants list | jq .name': ['--jq'],
  'For a format: --output. For a file: --out': ['export -f', 'export --format'],
  '--format json': ['import --json'],
  '--format csv': ['import --csv'],
  '--output csv': ['list --csv', 'get --csv', 'export --csv'],
  '--output': ['--format', 'list -f'],
  '--output json': ['--json', '-j'],
  '--store': ['--db', '--url'],
  '--yes': ['--force', '-f'],
  '--if-exists update': ['--upsert'],
  '--dry-run': ['--check'],
  '--out': ['--file'],
  '--limit': ['-n NUMBER', '--max', '-l'],
  '--search': ['--filter', '--name', '-n'],
  '--verbose': ['--debug'],
  '--quiet': ['--silent'],
}

/** The error for a command line at which commander stopped. The value of an unknown option is left out, because it may be a secret. */
export function usageError(argv: string[], program: Program, error: CommanderError): PlantsError {
  const { command } = program
  const name = nameOf(command)
  const invalid = (message: string, hint = seeHelp(name)) => malformed(message, hint, error)
  if (error.code === 'commander.unknownCommand' || error.code === 'commander.helpDisplayed')
    return invalid(...explainUnknownCommand(command))
  if (error.code === 'commander.unknownOption') return invalid(...explainUnknownOption(program, argv))
  if (error.code === 'commander.optionMissingArgument') return invalid(`${argv.at(-1)?.replace(/^-\w*(?=\w$)/, '-')} needs a value`) // -f for -yf
  if (error.code === 'commander.conflictingOption') return invalid(conflictIn(program), 'Leave out one of them')
  if (error.code === 'commander.help')
    return invalid('No command was given', argv.join() === '-v' ? 'For the version: plants -V' : undefined)
  const { args, registeredArguments: expected } = command
  const missing = expected[args.length]?.name()
  if (missing !== undefined) return invalid(`${name} needs ${/^[aeiou]/.test(missing) ? 'an' : 'a'} ${missing}`)
  const takes = ['no arguments', `one ${expected[0]?.name()}`][expected.length] ?? `${expected.length} arguments`
  return invalid(`${name} takes ${takes}, but got ${args.length}`, hintForExcess(program, argv))
}

type Explanation = [message: string, hint?: string | undefined]

function conflictIn({ command, definitions, given }: Program): string {
  const longs = [...given.values()]
  for (const { flags, conflicts = [] } of definitions.get(command)?.options ?? []) {
    const flag = longs.find((long) => flags.split(/[ ,]/).includes(long))
    const other = conflicts.find((name) => given.has(name))
    if (flag !== undefined && other !== undefined) return `${flag} cannot be used with ${given.get(other)}`
  }
  return 'Some options cannot be used together'
}

function explainUnknownCommand(command: Command): Explanation {
  const [word = ''] = command.args
  const names = command.commands.map((below) => below.name())
  const known = command.parent ? [...names, 'help'] : [...names, ...Object.keys(topics)]
  const nearby = nearest(word, known)
  const topic = Object.keys(topics).find((name) => nearby === didYouMean(name))
  const guess = habitOf([`${nameOf(command)} ${word.toLowerCase()}`.trim()]) ?? (topic ? `Did you mean: plants help ${topic}` : nearby)
  return [`Unknown command ${word.trim() === '' ? JSON.stringify(word) : shorten(word)}`, guess]
}

/** The hint for too many arguments: names an option, but never repeats an argument, which may be a secret. */
function hintForExcess({ command }: Program, argv: string[]): string | undefined {
  const name = nameOf(command)
  const { args, options } = command
  const habit = args.every((word) => isNumber(word)) ? habitOf([`${name} NUMBER`]) : undefined
  if (habit !== undefined) return habit
  const dashed = oneDash(argv, command)
  if (dashed !== undefined) return didYouMean(dashed)
  const swallowed = options.find((option) => flagsOf(options).includes(command.getOptionValue(option.attributeName())))
  if (swallowed) return `The value of ${swallowed.long} is ${command.getOptionValue(swallowed.attributeName())}. ${seeHelp(name)}`
  const assigned = longsOf(options).find((long) => args.some((word) => word.startsWith(`${long.slice(2)}=`)))
  return assigned && `Write options with dashes, such as ${assigned}. ${seeHelp(name)}`
}

function explainUnknownOption({ command }: Program, argv: string[]): Explanation {
  const at = command.args.findIndex((word) => /^-./.test(word) && !/^-(\d+|\d*\.\d+)(e[+-]?\d+)?$/.test(word)) // a negative id
  const [text = '', next] = command.args.slice(at)
  const flag = flagIn(text)
  if (command.options.some(({ long }) => long === flag)) return [`${flag} takes no value`]
  if (flag === '--token' || flag === '--password') {
    const [noun, variable] = flag === '--token' ? ['token', 'PLANTS_TOKEN'] : ['password', 'PGPASSWORD']
    const message = `A ${noun} is not accepted on the command line, where other users can see it`
    return [message, `Set ${variable}. To save it, see: plants auth login --help`]
  }
  const what = `Unknown option ${flag}`
  const dashed = oneDash(argv, command)
  if (dashed !== undefined) return [what, didYouMean(dashed)]
  const name = nameOf(command)
  const value = text === flag ? next : text.slice(flag.length)
  const word = flag.toLowerCase()
  const typed = [`${name} ${word}`.trim(), word, ...(isNumber(value) ? [`${word} NUMBER`] : [])]
  const known = [...longsOf(command.options), '--help']
  const guess = flag.startsWith('--') ? nearest(flag, known) : undefined
  const meant = command.args.find((operand) => subcommandOf(command, operand))
  if (meant !== undefined && guess === undefined)
    return [`${what} before the command`, `The options of a command follow it. ${seeHelp(`${name} ${meant}`.trim())}`]
  return [what, habitOf(typed, known) ?? guess]
}

/** The long option that was written with one dash, as in `-name Fern`, which means the name "ame". */
function oneDash(argv: string[], { options }: Command): string | undefined {
  return longsOf(options).find((long) => argv.some((word) => word.replace(/=.*/s, '') === long.slice(1)))
}

function longsOf(options: readonly Option[]): string[] {
  return options.flatMap(({ long }) => long ?? [])
}

function flagsOf(options: readonly Option[]): string[] {
  return [...longsOf(options), ...options.flatMap(({ short }) => short ?? [])]
}

/** The names of a command and of its parent, without the program. */
function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}`.trim() : ''
}

/** The hint for what other programs write, in one of these forms. */
function habitOf(typed: readonly string[], options: readonly string[] = []): string | undefined {
  const isKnown = (meant: string) => !meant.startsWith('-') || options.includes(meant.replace(/ .*/, ''))
  const isTyped = (word: string) => typed.includes(word)
  const [meant] = Object.entries(habits).find(([key, words]) => isKnown(key) && words.some(isTyped)) ?? []
  if (meant === undefined || /^[A-Z]/.test(meant)) return meant
  return meant.startsWith('-') ? `Did you mean ${meant}?` : `Did you mean: plants ${meant}`
}

/** The suggestion of the commands or options whose names are nearest to a word, if there are any. */
function nearest(word: string, known: readonly string[]): string | undefined {
  const name = word.toLowerCase()
  // A suggestion that removes something or weakens security must begin like the word, and differ in one edit if it changes plants.
  const isRisky = (guess: string) => /^(delete|remove|revoke|unset|logout|--allow-)/.test(guess)
  const isFar = (guess: string) => /^(delete|restore|update)$/.test(guess) && editsBetween(name, guess) > 1
  const beginning = (text: string) => text.slice(0, text.startsWith('--') ? 4 : 3)
  const guesses = similar(word, known).filter((guess) => !isFar(guess) && (!isRisky(guess) || beginning(guess) === beginning(word)))
  return guesses.length === 0 ? undefined : didYouMean(...guesses)
}

function didYouMean(...guesses: string[]): string {
  return `Did you mean ${guesses.length > 1 ? 'one of ' : ''}${guesses.join(', ')}?`
}

function isNumber(word = ''): boolean {
  return /^-?\d+$/.test(word)
}

function seeHelp(name: string): string {
  return `See: plants ${name && `${name} `}--help`
}

/** An option without its value. */
function flagIn(text = ''): string {
  return text.startsWith('--') ? text.replace(/[= ].*/s, '') : text.slice(0, 2)
}
