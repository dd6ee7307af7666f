import type { Command, CommanderError } from 'commander'
import { PlantsError } from './errors.js'

/**
 * Refuses `--name --tag x`, which commander would take for a plant named "--tag".
 *
 * @throws {PlantsError} `malformed`
 */
export function checkValues(argv: string[], program: Command): void {
  const takesValue = new Set(optionsOf(program).flatMap((option) => (option.required && option.long) || []))
  const end = argv.indexOf('--')
  const index = argv.findIndex((argument, at) => takesValue.has(argument) && looksLikeFlag(argv[at + 1]) && (end < 0 || at < end))
  if (index < 0) return
  throw new PlantsError('malformed', `${argv[index]} needs a value, but ${argv[index + 1]} follows`, {
    hint: `For a value that begins with a dash: ${argv[index]}=${argv[index + 1]}`,
  })
}

/**
 * Says in our words what commander found wrong with a command line, and what was probably meant. The value of a
 * flag that is not known is left out: it may be a secret.
 */
export function usageError(error: CommanderError, program: Command): PlantsError {
  const command = program.commands.find((candidate) => candidate.name() === program.args[0])
  const hint = `See: plants ${command ? `${command.name()} ` : ''}--help`
  const refuse = (message: string, advice = hint) => new PlantsError('malformed', message, { hint: advice, cause: error })
  const quoted = /'(.*)'/s.exec(error.message)?.[1] ?? ''
  const suggestion = /\n\((Did you mean .*\?)\)$/.exec(error.message)?.[1]
  switch (error.code) {
    case 'commander.unknownOption':
      return refuse(`Unknown flag ${quoted.replace(/=.*/s, '')}`, adviceForFlag(quoted.replace(/=.*/s, ''), program) ?? suggestion)
    case 'commander.unknownCommand':
      return refuse(`Unknown command ${quoted}`, meant[quoted] ?? suggestion)
    case 'commander.optionMissingArgument':
      return refuse(`${quoted.replace(/ .*/, '')} needs a value`)
    case 'commander.missingArgument':
      return refuse(`${command?.name()} needs an ${quoted}`)
    case 'commander.excessArguments':
      return tooMany(command, error)
    default:
      return refuse(error.message.replace(/^error: /, ''))
  }
}

/** The error for a command that there is not, which commander answers with the general help. */
export function unknownCommand(name: string): PlantsError {
  return new PlantsError('malformed', `Unknown command ${name}`, { hint: meant[name] ?? 'See: plants --help' })
}

/** What people type who know other programs. */
const meant: Record<string, string> = {
  '--format': 'Did you mean --output?',
  '--json': 'Did you mean --output json?',
  '-o': 'Did you mean --output?',
  '-f': 'Did you mean --file?',
  '--force': 'Did you mean --yes?',
  '-y': 'Did you mean --yes?',
  '-n': 'Did you mean --name?',
  '-v': 'Did you mean --version?',
  add: 'Did you mean create?',
  new: 'Did you mean create?',
  ls: 'Did you mean list?',
  rm: 'Did you mean delete?',
  remove: 'Did you mean delete?',
  show: 'Did you mean get?',
  version: 'Did you mean --version?',
}

function adviceForFlag(flag: string, program: Command): string | undefined {
  const owner = program.commands.find((command) => command.options.some((option) => option.long === flag))
  return meant[flag] ?? (owner && `Write it behind the command: plants ${owner.name()} ${flag}`)
}

function tooMany(command: Command | undefined, cause: unknown): PlantsError {
  const count = command?.registeredArguments.length ?? 0
  const taken = count === 0 ? 'no argument' : 'one argument'
  const message = `${command?.name()} takes ${taken}, but got ${JSON.stringify(command?.args[count])}${count === 0 ? '' : ' besides'}`
  return new PlantsError('malformed', message, { hint: 'Put quotes around a value with spaces: --name "Boston Fern"', cause })
}

function optionsOf(program: Command) {
  return [program, ...program.commands].flatMap((command) => command.options)
}

function looksLikeFlag(argument = ''): boolean {
  return /^-[^\d.]/.test(argument)
}
