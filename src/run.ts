import { Command, CommanderError } from 'commander'
import { version } from '../package.json'
import { defineCreate } from './commands/create.js'
import { defineDelete } from './commands/delete.js'
import { defineGet } from './commands/get.js'
import { defineList } from './commands/list.js'
import { PlantsError, systemCode } from './errors.js'
import type { Io } from './io.js'
import { writeAnswer, writeError } from './output.js'
import { mayColor } from './settings.js'

const commands = [defineCreate, defineGet, defineList, defineDelete]

/**
 * Runs the command line: does what the arguments ask for, and tells how it ended.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code of the contract's table; it never throws
 */
export async function run(argv: string[], io: Io): Promise<number> {
  try {
    await dispatch(argv, io)
    return 0
  } catch (error) {
    if (systemCode(error) === 'EPIPE') return 0
    const failure = error instanceof PlantsError ? error : defect(error)
    await writeError(io, failure, {
      errors: asksForJson(argv) ? 'json' : 'text',
      colors: (stream) => mayColor(stream, { color: !argv.includes('--no-color') }, io),
    })
    return failure.exitCode
  }
}

async function dispatch(argv: string[], io: Io): Promise<void> {
  let shown = ''
  const show = (text: string) => {
    shown += text
  }
  const program = buildProgram(io, show)
  for (const define of commands) define(program, io)
  try {
    checkArguments(argv, program, io)
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (!isHelp(error)) throw usageError(error, program, argv)
    await writeAnswer(io, shown, 'Run it again')
  }
}

function buildProgram(io: Io, show: (text: string) => void): Command {
  return new Command('plants')
    .description('Create plants in a store, and read what is there.')
    .version(version, '-V, --version', 'show the version')
    .option('--store <address>', 'which store: "local" (default), a path, or sqlite:PATH; also PLANTS_STORE')
    .option('--output <format>', 'text or json; by default text on a terminal, json elsewhere')
    .option('--timeout <duration>', 'how long to wait for a store that is in use: 30s (default), 500ms, 2m')
    .option('--no-input', 'never ask questions')
    .option('--no-color', 'no colours; also NO_COLOR')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText('after', '\nExamples:\n  plants create --id 1 --name Fern\n  plants list\n')
    .configureHelp({ showGlobalOptions: true, minWidthToWrap: 20, optionTerm: (option) => option.flags })
    .configureOutput({
      writeOut: show,
      writeErr: show,
      outputError: () => undefined,
      getOutHelpWidth: () => (io.stdout.isTerminal ? io.stdout.columns : 100),
      getErrHelpWidth: () => (io.stdout.isTerminal ? io.stdout.columns : 100),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride()
}

/** What commander lets pass: bytes that are not UTF-8, and `--name --tag x`, which would name a plant "--tag". */
function checkArguments(argv: string[], program: Command, io: Io): void {
  if (!io.argumentsAreExact()) {
    throw new PlantsError('malformed', 'An argument is not UTF-8', { hint: 'Use a UTF-8 terminal, or give the plant as JSON with --file' })
  }
  const flags = [program, ...program.commands].flatMap((command) => command.options.filter((option) => option.required))
  const names = new Set(flags.map((option) => option.long))
  const end = argv.indexOf('--')
  const index = argv.findIndex((argument, at) => names.has(argument) && looksLikeFlag(argv[at + 1]) && (end < 0 || at < end))
  const flag = argv[index]
  if (flag === undefined) return
  throw new PlantsError('malformed', `${flag} needs a value, but ${argv[index + 1]} follows`, {
    hint: `For a value that begins with a dash: ${flag}=${argv[index + 1]}`,
  })
}

function looksLikeFlag(argument = ''): boolean {
  return /^-[^\d.]/.test(argument)
}

function isHelp({ code }: CommanderError): boolean {
  return ['commander.helpDisplayed', 'commander.help', 'commander.version'].includes(code)
}

/** Says in our words what commander says in its own: "error: unknown option '--nmae'\n(Did you mean --name?)". */
function usageError(error: CommanderError, program: Command, argv: string[]): PlantsError {
  const [first = '', suggestion] = error.message.split('\n')
  const message = first.replace(/^error: /, '').replace(/\.$/, '')
  const command = program.commands.find((candidate) => argv.includes(candidate.name()))
  const hint = suggestion?.replace(/^\((.*)\)$/, '$1') ?? `See: plants ${command ? `${command.name()} ` : ''}--help`
  return new PlantsError('malformed', message.charAt(0).toUpperCase() + message.slice(1), { hint, cause: error })
}

function defect(cause: unknown): PlantsError {
  const hint = 'Please report it, with what you ran'
  return new PlantsError('defect', `A mistake in plants, not in what you did: ${cause instanceof Error ? cause.message : String(cause)}`, {
    hint,
    cause,
  })
}

function asksForJson(argv: string[]): boolean {
  return argv.includes('--output=json') || argv.some((argument, at) => argument === '--output' && argv[at + 1] === 'json')
}
