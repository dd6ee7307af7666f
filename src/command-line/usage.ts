import type { Command, CommanderError } from 'commander'
import { PlantsError, shellWord } from '../errors.js'
import { shorten } from '../plant.js'

/**
 * Refuses `--name --tag x`, which commander would take for a plant named "--tag".
 *
 * @throws {PlantsError} `malformed`
 */
export function checkValues(argv: string[], program: Command): void {
  const options = [program, ...below(program)].flatMap((command) => command.options)
  const takesValue = new Set(options.flatMap((option) => (option.required && option.long) || []))
  const end = argv.indexOf('--')
  const index = argv.findIndex((argument, at) => takesValue.has(argument) && looksLikeFlag(argv[at + 1]) && (end < 0 || at < end))
  if (index < 0) return
  const next = (argv[index + 1] ?? '').replace(/(?<=^--[^=]*)=.*/s, '')
  throw new PlantsError('malformed', `${argv[index]} needs a value, but ${next} follows`, {
    hint: `For a value that begins with a dash: ${argv[index]}=${shellWord(next)}`,
  })
}

/**
 * Says in our words what commander found wrong with a command line, and what was probably meant. The value of a
 * flag that is not known is left out: it may be a secret.
 */
export function usageError(error: CommanderError, argv: string[], program: Command): PlantsError {
  const command = typedCommand(argv, program)
  const name = pathOf(command)
  const see = `See: plants ${name && `${name} `}--help`
  const refuse = (message: string, hint = see) => new PlantsError('malformed', message, { hint, cause: error })
  const quoted = /'(.*)'/s.exec(error.message)?.[1] ?? ''
  const suggestion = harmless(/\n\((Did you mean .*\?)\)$/.exec(error.message)?.[1], quoted)
  switch (error.code) {
    case 'commander.unknownOption':
      return refuse(...explainFlag(quoted, argv, program, suggestion))
    case 'commander.unknownCommand':
      return refuse(
        `Unknown command ${nameOf(quoted)}`,
        suggest(quoted, command, program) ?? (quoted.startsWith('-') ? undefined : suggestion),
      )
    case 'commander.optionMissingArgument':
      return refuse(`${nameOf(quoted)} needs a value`)
    case 'commander.missingArgument':
      return refuse(`${name} needs ${/^[aeiou]/.test(quoted) ? 'an' : 'a'} ${quoted}`)
    case 'commander.excessArguments':
      return refuse(...explainExcess(command))
    default:
      return refuse(error.message.replace(/^error: /, ''))
  }
}

/** Guesses that take something away, or loosen something, are made only for a word that begins like them. */
function harmless(suggestion: string | undefined, typed: string): string | undefined {
  const guesses = /Did you mean (?:one of )?(.*)\?/.exec(suggestion ?? '')?.[1]?.split(', ') ?? []
  const isRisky = (guess: string) => /^(delete|remove|revoke|unset|logout|--allow-)/.test(guess)
  const beginning = (word: string) => word.slice(0, word.startsWith('--') ? 4 : 3)
  const kept = guesses.filter((guess) => !isRisky(guess) || beginning(guess) === beginning(typed))
  return kept.length === 0 ? undefined : `Did you mean ${kept.length > 1 ? 'one of ' : ''}${kept.join(', ')}?`
}

/** What people type who know other programs; the first that there is at this place is suggested. */
const meant = new Map([
  ['--dry-run', ['--check']],
  ['--force', ['--yes']],
  ['--format', ['--output']],
  ['--json', ['--output json']],
  ['-f', ['--file']],
  ['-n', ['--name']],
  ['-o', ['--out', '--output']],
  ['-y', ['--yes']],
  ['add', ['create']],
  ['context', ['stores use']],
  ['create', ['add']],
  ['current', ['list']],
  ['default', ['use']],
  ['delete', ['remove', 'revoke', 'unset']],
  ['dump', ['export']],
  ['edit', ['set']],
  ['file', ['path']],
  ['load', ['import']],
  ['login', ['auth login']],
  ['logout', ['auth logout']],
  ['ls', ['list']],
  ['new', ['create', 'add']],
  ['remove', ['delete', 'revoke', 'unset']],
  ['rename', ['add']],
  ['rm', ['remove', 'delete', 'revoke', 'unset']],
  ['select', ['use']],
  ['server', ['serve']],
  ['set', ['config set']],
  ['settings', ['config list']],
  ['show', ['get', 'list']],
  ['start', ['serve']],
  ['status', ['auth status']],
  ['switch', ['use', 'stores use']],
  ['use', ['stores use']],
  ['version', ['--version']],
  ['view', ['list']],
  ['whoami', ['auth status']],
])

type Explained = [message: string, hint: string | undefined]

function explainFlag(text: string, argv: string[], program: Command, suggestion: string | undefined): Explained {
  const flag = nameOf(text)
  const typed = typedCommand(argv, program)
  const hasFlag = (command: Command) => command.options.some((option) => option.long === flag)
  if (text.includes('=') && (hasFlag(program) || hasFlag(typed))) return [`${flag} takes no value`, undefined]
  if (flag === '--token')
    return ['A token is not taken from the command line, where others can see it', 'Set PLANTS_TOKEN, or save it with: plants auth login']
  if (flag === '--password')
    return ['A password is not taken from the command line, where others can see it', 'Set PGPASSWORD, or save it with: plants auth login']
  const isBefore = typed !== program && argv.indexOf(text) < argv.lastIndexOf(typed.name())
  if (isBefore && hasFlag(typed)) return [`Unknown flag ${flag} before the command`, `Write it behind: plants ${pathOf(typed)} ${flag}`]
  return [`Unknown flag ${flag}`, suggest(flag, typed, program) ?? suggestion]
}

/** What a word or a flag probably means where it was typed. */
function suggest(word: string, typed: Command, program: Command): string | undefined {
  const isThere = (other: string) => {
    const [first = ''] = other.split(' ')
    if (first.startsWith('-')) return [program, typed].some(({ options }) => options.some(({ long }) => long === first))
    const place = other.includes(' ') ? program : typed
    return place.commands.some((command) => command.name() === first)
  }
  const other = meant.get(word)?.find(isThere)
  return other && `Did you mean ${other}?`
}

function explainExcess(command: Command): Explained {
  const name = pathOf(command)
  const count = command.registeredArguments.length
  const excess = command.args[count] ?? ''
  const aboutToken = 'A token is asked for, or read from stdin with --with-token'
  if (name.startsWith('auth'))
    return [`${name} takes no argument`, `Name the store with --store${name.endsWith('login') ? `. ${aboutToken}` : ''}`]
  const mayBeSecret = /^(tokens|stores add|config set)\b/.test(name)
  const got = mayBeSecret ? 'more' : JSON.stringify(shorten(excess))
  const message = `${name} takes ${['no argument', 'one argument', 'two arguments'][count]}, but got ${got}`
  const isSplitName = name === 'create' && !excess.startsWith('-')
  return [
    count === 0 || mayBeSecret ? message : `${message} besides`,
    isSplitName ? 'Give them with flags: plants create --id 1 --name "Boston Fern"' : undefined,
  ]
}

/** The command that was typed, as far as the words lead to one. */
function typedCommand(argv: string[], program: Command): Command {
  return argv.reduce((command, word) => command.commands.find((candidate) => candidate.name() === word) ?? command, program)
}

/** What one types to get to a command, behind the name of the program. */
function pathOf(command: Command): string {
  const name = command.name()
  return command.parent === null ? '' : [pathOf(command.parent), name].filter(Boolean).join(' ')
}

function below(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...below(child)])
}

/** A flag without its value, or a word; in quotes where it would not be seen. */
function nameOf(text = ''): string {
  if (text.startsWith('--')) return text.replace(/[= ].*/s, '')
  if (text.startsWith('-')) return text.slice(0, 2)
  return text.trim() === '' ? JSON.stringify(text) : shorten(text)
}

function looksLikeFlag(argument = ''): boolean {
  return /^-[^\d.]/.test(argument)
}
