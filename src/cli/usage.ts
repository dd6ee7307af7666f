import type { Command, CommanderError } from 'commander'
import { PlantsError, shellWord } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'

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
export async function usageError(error: CommanderError, argv: string[], program: Command): Promise<PlantsError> {
  const command = typedCommand(argv, program)
  const name = pathOf(command)
  const see = `See: plants ${name && `${name} `}--help`
  const refuse = (message: string, hint = see) => new PlantsError('malformed', message, { hint, cause: error })
  switch (error.code) {
    case 'commander.unknownOption':
      return refuse(...(await explainFlag(unknownFlag(argv, parsedCommand(program)), argv, program)))
    case 'commander.unknownCommand': {
      const parent = parsedCommand(program)
      const word = parent.args[0] ?? ''
      const guess = word.startsWith('-')
        ? undefined
        : await guessFrom(
            word,
            parent.commands.map((child) => child.name()),
          )
      return refuse(`Unknown command ${nameOf(word)}`, suggest(word, command, program) ?? guess)
    }
    case 'commander.optionMissingArgument': // which only the last one can lack
      return refuse(`${nameOf(argv.at(-1))} needs a value`)
    case 'commander.missingArgument': {
      const missing = command.registeredArguments[command.args.length]?.name() ?? 'argument'
      return refuse(`${name} needs ${/^[aeiou]/.test(missing) ? 'an' : 'a'} ${missing}`)
    }
    case 'commander.excessArguments':
      return refuse(...explainExcess(command))
    default:
      return refuse(error.message)
  }
}

/** The first flag that neither a command nor one above it knows. */
function unknownFlag(argv: string[], last: Command): string {
  const path: Command[] = []
  for (let command: Command | null = last; command; command = command.parent) path.unshift(command)
  return path.reduce((unknown, command) => command.parseOptions(unknown).unknown, argv)[0] ?? ''
}

/** The last command that commander came to. */
function parsedCommand(command: Command): Command {
  const child = command.commands.find((candidate) => candidate.name() === command.args[0])
  return child ? parsedCommand(child) : command
}

/** Guesses that take something away, or loosen something, are made only for a word that begins like them. */
async function guessFrom(word: string, candidates: string[]): Promise<string | undefined> {
  const { similar } = await import('../platform/nearest.js')
  const isRisky = (guess: string) => /^(delete|remove|revoke|unset|logout|--allow-)/.test(guess)
  const beginning = (text: string) => text.slice(0, text.startsWith('--') ? 4 : 3)
  const guesses = similar(word, candidates).filter((guess) => !isRisky(guess) || beginning(guess) === beginning(word))
  return guesses.length === 0 ? undefined : `Did you mean ${guesses.length > 1 ? 'one of ' : ''}${guesses.join(', ')}?`
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

async function explainFlag(text: string, argv: string[], program: Command): Promise<Explained> {
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
  const known = [typed, program].flatMap((command) => command.options.flatMap(({ long }) => long ?? []))
  const guess = text.startsWith('--') ? await guessFrom(flag, ['--help', ...known]) : undefined
  return [`Unknown flag ${flag}`, suggest(flag, typed, program) ?? guess]
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
