import { Command, CommanderError } from 'commander'
import { version } from '../../package.json'
import { writeAnswer } from '../output/output.js'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { pathTo, plants } from './commands/index.js'
import { helpCommand, helpFlag, helpPage, widthFor } from './help/page.js'
import { topicOf } from './help/topics.js'
import type { CommandSpec, Flag, Topic } from './spec.js'
import { checkValues, usageError } from './usage.js'
import { writeVersion } from './version.js'

/**
 * Does what a command line says.
 *
 * @param argv the arguments after the program's name
 * @throws {PlantsError} what went wrong, also with the command line itself
 */
export async function runCommand(argv: string[], io: Io): Promise<void> {
  const topic = argv.includes('help') ? topicIn(argv, io) : undefined
  if (topic) return writeAnswer(io, await topic.page(widthFor(io)), 'Run it again')
  if (argv[0] === 'help' && argv.length > 2) return runCommand([...argv.slice(1), '--help'], io)
  const asksForHelp = argv.some((argument) => ['-h', '--help', 'help'].includes(argument))
  const named = asksForHelp ? [] : (plants.commands ?? []).filter(({ name }) => argv.includes(name))
  const isVersion = argv.includes('-V') || argv.includes('--version')
  const stop = (named.length > 0 || isVersion) && (await parse(argv, io, named))
  if (stop === undefined) return
  if (stop && stop.error.code === 'commander.version') return writeVersion(argv, io)
  const explained = await parse(argv, io, plants.commands ?? []) // what is wrong is told knowing all commands
  if (explained) await tell(explained, argv, io)
}

/** The topic that is asked for among global flags. */
function topicIn(argv: string[], io: Io): Topic | undefined {
  const [first, ...words] = buildProgram(io, () => undefined).parseOptions(argv).operands
  return first === 'help' ? topicOf(words) : undefined
}

async function tell({ error, program, shown }: Stop, argv: string[], io: Io): Promise<void> {
  if (!['commander.helpDisplayed', 'commander.help'].includes(error.code)) throw await usageError(error, argv, program)
  const unknown = unknownCommand(argv, program)
  if (unknown !== undefined) return runCommand([unknown], io)
  await writeAnswer(io, shown, 'Run it again')
}

/** Why commander stopped, before the command did anything. */
interface Stop {
  error: CommanderError
  program: Command
  /** the help */
  shown: string
}

/** Does what a command line says, with these commands. */
async function parse(argv: string[], io: Io, commands: CommandSpec[]): Promise<Stop | undefined> {
  let shown = ''
  const program = buildProgram(io, (text) => {
    shown += text
  })
  for (const command of commands) addCommand(program, command, io)
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
  const [versionFlag, ...flags] = plants.flags ?? []
  const program = new Command(plants.name)
    .version(version, versionFlag?.term)
    .helpOption(helpFlag.term)
    .helpCommand(helpCommand.term)
    .configureHelp({ formatHelp: (command) => helpPage(pathTo(namesOf(command)) ?? [plants], widthFor(io)) })
    .configureOutput({ writeOut: show, writeErr: show, outputError: () => undefined })
    .showSuggestionAfterError(false)
    .exitOverride()
  for (const flag of flags) addFlag(program, flag)
  return program
}

function addCommand(parent: Command, spec: CommandSpec, io: Io): void {
  const command = parent.command(spec.name)
  for (const { term } of spec.arguments ?? []) command.argument(term)
  for (const flag of spec.flags ?? []) addFlag(command, flag)
  for (const child of spec.commands ?? []) addCommand(command, child, io)
  const { run } = spec
  if (!run) return
  command.action(async () => {
    await run({ args: command.args, flags: () => command.optsWithGlobals() }, io)
  })
}

function addFlag(command: Command, { term, preset }: Flag): void {
  command.option(term, '', preset)
}

/** What one types to get to a command, without the name of the program. */
function namesOf(command: Command): string[] {
  return command.parent === null ? [] : [...namesOf(command.parent), command.name()]
}
