import type { CommanderError } from 'commander'
import { malformed, type PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { editsBetween, similar } from '../../platform/nearest.js'
import { type CommandLine, findOption, longName, optionsAt, parseCommandLine, takesValue } from '../command-line.js'
import { plants } from '../commands/index.js'
import { commandFor } from '../define-command.js'

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

/**
 * The error for an invalid command line. The value of an unknown option is left out, because it may be a secret.
 *
 * @param cause the error of commander, if the line names a command
 */
export function usageError(argv: string[], parsed: CommandLine, cause?: CommanderError): PlantsError {
  const { names, command, operands, unknown, pending } = parsed
  const { arguments: args = [] } = command
  const name = names.join(' ')
  const invalid = (message: string, hint = seeHelp(name)) => malformed(message, hint, cause)
  if (pending) return invalid(`${nameOf(argv.at(-1))} needs a value`)
  const conflict = conflictIn(parsed)
  if (conflict) return invalid(conflict.join(' cannot be used with '), 'Leave out one of them')
  if (command.commands && operands.length > 0) return unknownCommand(parsed)
  const [option] = unknown
  if (option !== undefined) return invalid(...explainUnknownOption(option, argv))
  if (command === plants && argv.join() === '-v') return invalid('No command was given', 'For the version: plants -V')
  if (command === plants) return invalid('No command was given')
  const missing = args[operands.length]?.name.slice(1, -1)
  if (missing !== undefined) return invalid(`${name} needs ${/^[aeiou]/.test(missing) ? 'an' : 'a'} ${missing}`)
  const takes = ['no arguments', `one ${args[0]?.name.slice(1, -1)}`][args.length] ?? `${args.length} arguments`
  return invalid(`${name} takes ${takes}, but got ${operands.length}`, hintForExcess(parsed))
}

function conflictIn({ command, given }: CommandLine): [option: string, other: string] | undefined {
  for (const option of command.options ?? []) {
    const other = option.conflicts?.find((name) => given.has(`--${name}`))
    if (given.has(longName(option)) && other !== undefined) return [longName(option), `--${other}`]
  }
  return undefined
}

export function unknownCommand({ names, command, operands: [word = ''] }: CommandLine): PlantsError {
  const { commands = [], topics = [] } = command
  const others = [...commands, ...(commands.length > 0 ? [{ name: 'help' }] : [])].filter(({ name }) => name !== word) // after `--`
  const known = [...others, ...topics].map(({ name }) => name)
  const guess = habitOf([[...names, word.toLowerCase()].join(' ')]) ?? nearest(word, known)
  const hint = topics.reduce((text, { name }) => text?.replace(`mean ${name}?`, `mean: plants help ${name}`), guess)
  return malformed(`Unknown command ${nameOf(word)}`, hint ?? seeHelp(names.join(' ')))
}

/** The hint for too many arguments: names an option, but never repeats an argument, which may be a secret. */
function hintForExcess(parsed: CommandLine): string | undefined {
  const { names, operands, given } = parsed
  const name = names.join(' ')
  const options = optionsAt(parsed)
  const habit = operands.every((word) => isNumber(word)) ? habitOf([`${name} NUMBER`]) : undefined
  if (habit !== undefined) return habit
  const isAssigned = (option: string) => operands.some((word) => word.startsWith(`${option.slice(2)}=`))
  const assigned = options.map(longName).find(isAssigned)
  if (assigned !== undefined) return `Write options with dashes, such as ${assigned}. ${seeHelp(name)}`
  const hasText = options.some((option) => option.flags.endsWith('<text>') && given.has(longName(option)))
  return hasText ? `Put a value with spaces in quotes. ${seeHelp(name)}` : undefined
}

function explainUnknownOption(text: string, argv: string[]): [message: string, hint?: string] {
  const flag = nameOf(text)
  const meant = meantCommand(argv)
  const name = meant.names.join(' ')
  const option = findOption(flag, meant)
  if (option && text.includes('=') && !takesValue(option)) return [`${flag} takes no value`, seeHelp(name)]
  if (flag === '--token' || flag === '--password') {
    const [noun, variable] = flag === '--token' ? ['token', 'PLANTS_TOKEN'] : ['password', 'PGPASSWORD']
    const message = `A ${noun} is not accepted on the command line, where other users can see it`
    return [message, `Set ${variable}. To save it, see: plants auth login --help`]
  }
  const what = `Unknown option ${flag}`
  if (option) return [`${what} before the command`, `The options of a command follow it. ${seeHelp(name)}`]
  const value = text === flag ? argv[argv.indexOf(text) + 1] : text.slice(flag.length)
  const word = flag.toLowerCase()
  const typed = [[...meant.names, word].join(' '), word, ...(isNumber(value) ? [`${word} NUMBER`] : [])]
  const known = optionsAt(meant).map(longName)
  const guess = flag.startsWith('--') ? nearest(flag, known) : undefined
  return [what, habitOf(typed, known) ?? guess ?? seeHelp(name)]
}

/** The command that was meant, even if it follows the unknown option. */
function meantCommand(argv: string[]): CommandLine {
  let meant = parseCommandLine([], plants)
  for (const word of argv) if (commandFor(word, meant.command.commands)) meant = parseCommandLine([...meant.names, word], plants)
  return meant
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
  return guesses.length === 0 ? undefined : `Did you mean ${guesses.length > 1 ? 'one of ' : ''}${guesses.join(', ')}?`
}

function isNumber(word = ''): boolean {
  return /^-?\d+$/.test(word)
}

function seeHelp(name: string): string {
  return `See: plants ${name && `${name} `}--help`
}

/** An option without its value, or a word; a blank word is in quotes. */
function nameOf(text = ''): string {
  if (text.startsWith('--')) return text.replace(/[= ].*/s, '')
  if (text.startsWith('-')) return text.slice(0, 2)
  return text.trim() === '' ? JSON.stringify(text) : shorten(text)
}
