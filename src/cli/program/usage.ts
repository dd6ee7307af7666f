import type { Command, CommanderError } from 'commander'
import { malformed, type PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { similar } from '../../platform/nearest.js'
import { topics } from '../commands/index.js'
import { type Program, subcommandOf } from './program.js'

/**
 * What the words of other programs mean here: a command, an option, or a sentence. A word stands alone or after its
 * command; NUMBER stands for arguments that are all numbers, and WORD for any. The first match counts; of options, only
 * one that the command has.
 */
export const habits: Readonly<Record<string, readonly string[]>> = {
  'list --search TEXT': ['search', 'find'],
  count: ['list --count'],
  'count --by tag': ['tags'],
  'count --by name': ['duplicates'],
  'update ID --name TEXT': ['edit', 'modify', 'patch', 'put', 'rename'],
  'import FILE': ['load'],
  'export --out FILE': ['dump', 'list --out', 'export WORD'],
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
  'Its fields are options, and a text with spaces is in quotes: plants create --id ID --name "TEXT"': ['create WORD'],
  'The id is an argument: plants get ID': ['get --id', 'get -i'],
  'For plants that match: plants list --search TEXT | plants update - --tag TEXT': ['update --search'],
  'The id is an argument: plants delete ID': ['delete --id', 'delete -i'],
  'The id is an argument, and cannot be changed: plants update ID --name TEXT': ['update --id', 'update -i'],
  'To skip or update a plant that exists, import it from stdin. See: plants import --help': [
    'create --if-exists',
    'create --replace',
    'create --upsert',
  ],
  'Name the files without an option: plants import FILE': ['import --file', 'import --input', 'import -f', 'import -i'],
  'For a number of plants: --limit. For a text: --search': ['list -n', 'count -n'],
  '--desc': ['list --descending', 'list --reverse', 'list -r'],
  '--by': ['count --group-by'],
  'Pipe JSON to jq, for example: plants list | jq .name': ['--jq'],
  'For a format: --output. For a file: --out': ['export -f', 'export --format'],
  '--format json': ['import --json'],
  '--format csv': ['import --csv'],
  '--output csv': ['list --csv', 'get --csv', 'export --csv'],
  '--output': ['--format', 'list -f'],
  '--output json': ['--json', '-j'],
  '--store': ['--db', '--url'],
  '--yes': ['--force', '-f'],
  '--if-exists update': ['--upsert', 'import --update', 'import --overwrite'],
  '--dry-run': ['--check'],
  '--out': ['--file'],
  '--limit': ['--max', '-l'],
  '--search': ['--filter', '--name'],
  '--verbose': ['--debug'],
  '--quiet': ['--silent'],
}

/** Leaves out the value of an unknown option, because it may be a secret. */
export function usageError(argv: string[], program: Program, error: CommanderError): PlantsError {
  const [message, hint = seeHelp(nameOf(program.command))] = explain(argv, program, error.code)
  return malformed(message, hint, error)
}

type Advice = [message: string, hint?: string | undefined]

function explain(argv: string[], program: Program, code: string): Advice {
  const { command } = program
  if (code === 'commander.unknownCommand') return explainUnknownCommand(command)
  if (code === 'commander.unknownOption') return explainUnknownOption(command, argv)
  // -f for -yf
  if (code === 'commander.optionMissingArgument') return [`${argv.at(-1)?.replace(/^-\w*(?=\w$)/, '-')} needs a value`]
  if (code === 'commander.help') return ['No command was given']
  if (code === 'commander.conflictingOption') return [conflictIn(program), 'Leave out one of them']
  const name = nameOf(command)
  const { args, registeredArguments: expected } = command
  const missing = expected[args.length]?.name()
  const written = program.definitions.get(command)?.options ? command.usage() : command.usage().replace('[options]', '')
  const usage = `${`Usage: plants ${name} ${written.trim()}`.trim()}. ${seeHelp(name)}`
  if (missing !== undefined) return [`${name} needs ${/^[aeiou]/.test(missing) ? 'an' : 'a'} ${missing}`, usage]
  const takes = ['no arguments', `one ${expected[0]?.name()}`][expected.length] ?? `${expected.length} arguments`
  const meant = args.every((word) => /^\d+$/.test(word)) ? habitOf([`${name} NUMBER`]) : undefined
  return [
    `${name} takes ${takes}, but got ${args.length}`,
    meant ?? didYouMean(oneDash(argv, command)) ?? swallowedFlag(command) ?? habitOf([`${name} WORD`]) ?? usage,
  ]
}

function conflictIn({ command, definitions, given }: Program): string {
  const longs = [...given.values()]
  for (const { flags, conflicts = [] } of definitions.get(command)?.options ?? []) {
    const flag = longs.find((long) => flags.split(/[ ,]/).includes(long))
    const other = conflicts.find((name) => given.has(name))
    if (flag !== undefined && other !== undefined) return `${flag} cannot be used with ${given.get(other)}`
  }
  return 'Some options cannot be used together'
}

function explainUnknownCommand(command: Command): Advice {
  const [word = ''] = command.args
  const names = [...command.commands.map((below) => below.name()), 'help']
  const topic = command.parent ? undefined : similar(word, Object.keys(topics))[0]
  const guess =
    habitOf([`${nameOf(command)} ${word.toLowerCase()}`.trim()]) ??
    didYouMean(...nearest(word, names)) ??
    (topic && `Did you mean: plants help ${topic}`)
  return [`Unknown command ${word.trim() === '' ? JSON.stringify(word) : shorten(word)}`, guess]
}

function explainUnknownOption(command: Command, argv: string[]): Advice {
  // not a negative id
  const text = command.args.find((word) => /^-./.test(word) && !/^-(\d+|\d*\.\d+)(e[+-]?\d+)?$/.test(word)) ?? ''
  const flag = text.startsWith('--') ? text.replace(/[= ].*/s, '') : text.slice(0, 2)
  const longs = command.options.flatMap(({ long }) => long ?? [])
  if (longs.includes(flag)) return [`${flag} takes no value`]
  if (flag === '--token' || flag === '--password') {
    const message = `A ${flag.slice(2)} is not accepted on the command line, where other users can see it`
    const hint = 'Set PLANTS_TOKEN. To save it, see: plants auth login --help'
    return [message, flag === '--token' ? hint : 'Set PGPASSWORD, or write it to ~/.pgpass']
  }
  const what = `Unknown option ${flag}`
  const name = nameOf(command)
  const known = [...longs, '--help']
  const guess =
    didYouMean(oneDash(argv, command)) ??
    habitOf([`${name} ${flag}`.trim(), flag], known) ??
    didYouMean(...(flag.startsWith('--') ? nearest(flag, known) : []))
  const below = command.args.find((word) => subcommandOf(command, word))
  if (below === undefined || guess !== undefined) return [what, guess]
  return [`${what} before the command`, `The options of a command follow it. ${seeHelp(`${name} ${below}`.trim())}`]
}

/** The long option written with one dash: `-name Fern` means the name "ame". */
function oneDash(argv: string[], { options }: Command): string | undefined {
  return options.find(({ long }) => argv.some((word) => word === long?.slice(1)))?.long
}

/** An option whose value is another option: in `--id $ID --name Fern`, ID may be empty. */
function swallowedFlag(command: Command): string | undefined {
  const flags: unknown[] = command.options.flatMap(({ short, long }) => [short ?? '', long ?? ''])
  for (const option of command.options) {
    const value = command.getOptionValue(option.attributeName())
    if (flags.includes(value)) return `The value of ${option.long} is ${value}. ${seeHelp(nameOf(command))}`
  }
  return undefined
}

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}`.trim() : ''
}

function habitOf(typed: readonly string[], options: readonly string[] = []): string | undefined {
  const isKnown = (meant: string) => !meant.startsWith('-') || options.includes(meant.replace(/ .*/, ''))
  const [meant] =
    Object.entries(habits).find(([key, words]) => isKnown(key) && words.some((word) => typed.includes(word))) ?? []
  if (meant === undefined || /^[A-Z]/.test(meant)) return meant
  return meant.startsWith('-') ? didYouMean(meant) : `Did you mean: plants ${meant}`
}

/** A name that removes something or weakens security must begin as the word does. */
function nearest(word: string, known: readonly string[]): string[] {
  const isRisky = (guess: string) => /^(delete|remove|revoke|unset|logout|--allow-)/.test(guess)
  return similar(word, known).filter((guess) => !isRisky(guess) || guess.slice(0, 4) === word.slice(0, 4))
}

function didYouMean(...guesses: (string | undefined)[]): string | undefined {
  if (guesses[0] === undefined) return undefined
  return `Did you mean ${guesses.length > 1 ? 'one of ' : ''}${guesses.join(', ')}?`
}

function seeHelp(name: string): string {
  return `See: plants ${name && `${name} `}--help`
}
