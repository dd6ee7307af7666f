import type { Command, CommanderError } from 'commander'
import { PlantsError } from './errors.js'
import { shorten } from './plant.js'

/**
 * Refuses `--name --tag x`, which commander would take for a plant named "--tag".
 *
 * @throws {PlantsError} `malformed`
 */
export function checkValues(argv: string[], program: Command): void {
  const options = [program, ...program.commands].flatMap((command) => command.options)
  const takesValue = new Set(options.flatMap((option) => (option.required && option.long) || []))
  const end = argv.indexOf('--')
  const index = argv.findIndex((argument, at) => takesValue.has(argument) && looksLikeFlag(argv[at + 1]) && (end < 0 || at < end))
  if (index < 0) return
  const next = argv[index + 1]?.replace(/(?<=^--[^=]*)=.*/s, '')
  throw new PlantsError('malformed', `${argv[index]} needs a value, but ${next} follows`, {
    hint: `For a value that begins with a dash: ${argv[index]}=${next}`,
  })
}

/**
 * Says in our words what commander found wrong with a command line, and what was probably meant. The value of a
 * flag that is not known is left out: it may be a secret.
 */
export function usageError(error: CommanderError, argv: string[], program: Command): PlantsError {
  const command = program.commands.find((candidate) => candidate.name() === program.args[0])
  const see = `See: plants ${command ? `${command.name()} ` : ''}--help`
  const refuse = (message: string, hint = see) => new PlantsError('malformed', message, { hint, cause: error })
  const quoted = /'(.*)'/s.exec(error.message)?.[1] ?? ''
  const suggestion = /\n\((Did you mean .*\?)\)$/.exec(error.message)?.[1]
  switch (error.code) {
    case 'commander.unknownOption':
      return refuse(...explainFlag(quoted, argv, program, suggestion))
    case 'commander.unknownCommand':
      return refuse(`Unknown command ${nameOf(quoted)}`, suggest(quoted) ?? suggestion)
    case 'commander.optionMissingArgument':
      return refuse(`${nameOf(quoted)} needs a value`)
    case 'commander.missingArgument':
      return refuse(`${command?.name()} needs an ${quoted}`)
    case 'commander.excessArguments':
      return refuse(...explainExcess(command))
    default:
      return refuse(error.message.replace(/^error: /, ''))
  }
}

/** What people type who know other programs. */
const meant = new Map([
  ['--force', '--yes'],
  ['--format', '--output'],
  ['--json', '--output json'],
  ['-f', '--file'],
  ['-n', '--name'],
  ['-o', '--output'],
  ['-v', '--version'],
  ['-y', '--yes'],
  ['add', 'create'],
  ['ls', 'list'],
  ['new', 'create'],
  ['remove', 'delete'],
  ['rm', 'delete'],
  ['show', 'get'],
  ['version', '--version'],
])

type Explained = [message: string, hint: string | undefined]

function explainFlag(text: string, argv: string[], program: Command, suggestion: string | undefined): Explained {
  const flag = nameOf(text)
  const typed = program.commands.find((command) => argv.includes(command.name()))
  const hasFlag = (command: Command | undefined, name = flag) => command?.options.some((option) => option.long === name) ?? false
  if (text.includes('=') && (hasFlag(program) || hasFlag(typed))) return [`${flag} takes no value`, undefined]
  const isBefore = typed !== undefined && argv.indexOf(text) < argv.indexOf(typed.name())
  if (isBefore && hasFlag(typed)) return [`Unknown flag ${flag} before the command`, `Write it behind: plants ${typed.name()} ${flag}`]
  const other = meant.get(flag)?.split(' ')[0]
  const isKnown = other !== undefined && (hasFlag(program, other) || hasFlag(typed, other))
  return [`Unknown flag ${flag}`, isKnown ? suggest(flag) : suggestion]
}

function suggest(word: string): string | undefined {
  const other = meant.get(word)
  return other && `Did you mean ${other}?`
}

function explainExcess(command: Command | undefined): Explained {
  const count = command?.registeredArguments.length ?? 0
  const excess = command?.args[count] ?? ''
  const message = `${command?.name()} takes ${count === 0 ? 'no argument' : 'one argument'}, but got ${JSON.stringify(shorten(excess))}`
  const isSplitName = command?.name() === 'create' && !excess.startsWith('-')
  return [
    count === 0 ? message : `${message} besides`,
    isSplitName ? 'Give them with flags: plants create --id 1 --name "Boston Fern"' : undefined,
  ]
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
