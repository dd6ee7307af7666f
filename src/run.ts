import { Command, CommanderError } from 'commander'
import { version } from '../package.json'
import { PlantsError, systemCode } from './errors.js'
import type { Io } from './io.js'
import { writeAnswer, writeError } from './output.js'
import { presetOf, settingNames, settingOf } from './settings/table.js'
import { errorFormat, mayColor } from './settings.js'
import { checkValues, usageError } from './usage.js'

/** Each is loaded only for a command line that names it; all are for one that has to be explained. */
const commands: Record<string, () => Promise<(program: Command, io: Io) => void>> = {
  create: async () => (await import('./commands/create.js')).defineCreate,
  get: async () => (await import('./commands/get.js')).defineGet,
  list: async () => (await import('./commands/list.js')).defineList,
  import: async () => (await import('./commands/import.js')).defineImport,
  delete: async () => (await import('./commands/delete.js')).defineDelete,
  export: async () => (await import('./commands/export.js')).defineExport,
  backup: async () => (await import('./commands/backup.js')).defineBackup,
  restore: async () => (await import('./commands/restore.js')).defineRestore,
  serve: async () => (await import('./commands/serve.js')).defineServe,
  tokens: async () => (await import('./commands/tokens.js')).defineTokens,
  openapi: async () => (await import('./commands/openapi.js')).defineOpenapi,
  stores: async () => (await import('./commands/stores.js')).defineStores,
  auth: async () => (await import('./commands/auth.js')).defineAuth,
  config: async () => (await import('./commands/config.js')).defineConfig,
  doctor: async () => (await import('./commands/doctor.js')).defineDoctor,
}

/**
 * Runs the command line: does what the arguments ask for, and tells how it ended.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code of the contract's table; it never throws
 */
export async function run(argv: string[], io: Io): Promise<number> {
  hideTokens(io)
  try {
    await dispatch(argv, io)
    return 0
  } catch (error) {
    if (systemCode(error) === 'EPIPE') return 0
    const failure = error instanceof PlantsError ? error : defect(error)
    return await tell(failure, argv, io)
  }
}

/** Tells what failed, and gives its exit code, or that of a signal that comes while nobody reads it. */
async function tell(failure: PlantsError, argv: string[], io: Io): Promise<number> {
  try {
    await writeError(io, failure, {
      errors: await errorFormat(outputFlag(argv), io),
      colors: (stream) => mayColor(stream, { color: !argv.includes('--no-color') }, io),
    })
    return failure.exitCode
  } catch (interruption) {
    if (!(interruption instanceof PlantsError)) throw interruption
    return interruption.exitCode
  }
}

/** Before anything can be said about them. */
function hideTokens({ env, secrets }: Io): void {
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = env[name]?.trim()
    if (token) secrets.add(token)
  }
}

async function dispatch(argv: string[], io: Io): Promise<void> {
  if (!io.argumentsAreExact()) {
    throw new PlantsError('malformed', 'An argument is not UTF-8', { hint: 'Use a UTF-8 terminal, or give the plant as JSON with --file' })
  }
  if (argv.includes('help') && argv[argv.indexOf('help') + 1] === 'environment') return showTopic(io)
  if (argv[0] === 'help' && argv.length > 2) return dispatch([...argv.slice(1), '--help'], io)
  const all = Object.keys(commands)
  const asksForHelp = argv.some((argument) => ['-h', '--help', 'help'].includes(argument))
  const named = asksForHelp ? [] : all.filter((name) => argv.includes(name))
  if (named.length > 0 || argv.includes('-V') || argv.includes('--version')) {
    const stop = await parse(argv, io, named)
    if (!stop) return
    if (stop.error.code === 'commander.version') return writeAnswer(io, stop.shown, 'Run it again')
  }
  const stop = await parse(argv, io, all)
  if (!stop) return
  const { error, program, shown } = stop
  if (!['commander.helpDisplayed', 'commander.help'].includes(error.code)) throw usageError(error, argv, program)
  const unknown = unknownCommand(argv, program)
  if (unknown !== undefined) return dispatch([unknown], io)
  await writeAnswer(io, shown, 'Run it again')
}

async function showTopic(io: Io): Promise<void> {
  const { environment } = await import('./help-environment.js')
  await writeAnswer(io, await environment(), 'Run it again')
}

/** Why commander stopped, before the command did anything. */
interface Stop {
  error: CommanderError
  program: Command
  /** the help or the version */
  shown: string
}

/** Does what a command line says, with these commands. */
async function parse(argv: string[], io: Io, names: string[]): Promise<Stop | undefined> {
  let shown = ''
  const program = buildProgram(io, (text) => {
    shown += text
  })
  for (const name of names) (await commands[name]?.())?.(program, io)
  checkValues(argv, program)
  try {
    await program.parseAsync(argv, { from: 'user' })
    return undefined
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return { error, program, shown }
  }
}

/** The command that help was asked for, if there is none of that name. Help is no answer to flags without a command either. */
function unknownCommand(argv: string[], program: Command): string | undefined {
  const [first, second] = program.parseOptions(argv).operands
  const asksForIt = argv.includes('-h') || argv.includes('--help')
  if (first === undefined && argv.length > 0 && !asksForIt) {
    const hint = argv.includes('-v') ? 'For the version: plants --version' : 'See: plants --help'
    throw new PlantsError('malformed', 'No command was given', { hint })
  }
  const name = first === 'help' ? second : first
  return name === 'help' || program.commands.some((command) => command.name() === name) ? undefined : name
}

function buildProgram(io: Io, show: (text: string) => void): Command {
  const program = new Command('plants')
    .description('Create plants in a store, here or behind HTTP, and read what is there.')
    .version(version, '-V, --version', 'show the version')
  for (const name of settingNames) {
    const { flag, meaning, isSwitch } = settingOf(name)
    if (flag !== undefined) program.option(flag, isSwitch ? meaning : `${meaning}; by default ${presetOf(name)}`)
  }
  return program
    .option('-v, --verbose', 'tell on stderr what is done: settings and where from, requests and answers')
    .option('--no-input', 'never ask questions')
    .option('--no-color', 'no colours; also NO_COLOR')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText('after', '\nExamples:\n  plants create --id 1 --name Fern\n  plants list\n  plants help environment\n')
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

function defect(cause: unknown): PlantsError {
  const hint = 'Please report it, with what you ran'
  return new PlantsError('defect', `A mistake in plants, not in what you did: ${cause instanceof Error ? cause.message : String(cause)}`, {
    hint,
    cause,
  })
}

/** What `--output` says, where the flags as a whole may not be understood. */
function outputFlag(argv: string[]): string | undefined {
  const end = argv.indexOf('--')
  const flags = end < 0 ? argv : argv.slice(0, end)
  const values = flags.flatMap((flag, at) =>
    flag === '--output' ? (flags[at + 1] ?? []) : flag.startsWith('--output=') ? flag.slice(9) : [],
  )
  return values.at(-1)
}
