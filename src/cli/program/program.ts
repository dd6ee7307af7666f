import { CommanderError } from 'commander'
import { version } from '../../../package.json'
import { createUsageError } from '../../errors.js'
import type { Io } from '../../platform/io.js'
import { type CommandLine, CommandLineError, PlantsCommand } from '../command.js'
import { findEndOfOptions, formatHelpHint, getCommandPath } from '../command-names.js'
import { type ListedCommand, listedCommands } from '../commands/index.js'
import { createGlobalOptions } from '../global-options.js'

/**
 * Runs a command line, and returns the text that commander has built for it: help, the version or
 * nothing. A command writes all other output itself.
 *
 * @throws {PlantsError} `usage` for an invalid line, or the error of the command
 */
export async function runCommand(line: CommandLine, io: Io): Promise<string> {
  let text = ''
  const program = await buildProgram(io, line, (page) => {
    text += page
  })
  const exitCode = await parseAndRun(program, line)
  // For a line without a command, commander also builds the help, and ends with a failure. That is
  // an answer to `plants stores`, but not to `plants stores --timeout list`.
  if (exitCode !== 0 && line.argv.some((word) => word.startsWith('-'))) {
    const path = getCommandPath(line.command ?? program)
    throw createUsageError('No command follows the options', formatHelpHint(path))
  }
  return text
}

/**
 * Parses a command line, and runs the handler of its command.
 *
 * @returns the exit code of commander, which is not 0 for a line without a command
 */
async function parseAndRun(program: PlantsCommand, line: CommandLine): Promise<number> {
  try {
    await program.parseAsync(line.argv, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode
    if (asksForHelp(line)) {
      line.command?.outputHelp()
      return 0
    }
    if (error instanceof CommandLineError)
      throw (await import('../usage-errors.js')).explainCommandLineError(error)
    throw error
  }
}

/**
 * Whether a line asks for help, which wins over its errors. In the place of the value of an option,
 * and after `--`, the word means something else.
 */
function asksForHelp({ argv, command }: CommandLine): boolean {
  const words = argv.slice(0, findEndOfOptions(argv))
  return words.some((word, index) => {
    const previousWord = words[index - 1] ?? ''
    const isValue = command?.options.some(
      ({ long, short, required }) => required && [long, short].includes(previousWord),
    )
    return ['-h', '--help'].includes(word) && !isValue
  })
}

/**
 * Builds the program with the commands that a line names. Loading all commands would take a third
 * of the time of a start.
 *
 * @param line the command line; without it, the program has all commands
 * @param write receives help and the version
 */
export async function buildProgram(
  io: Io,
  line?: CommandLine,
  write: (text: string) => void = () => undefined,
): Promise<PlantsCommand> {
  const program = createProgram(io, line, write)
  for (const option of createGlobalOptions()) program.addOption(option)
  for (const [name, listedCommand] of listCommands(line)) {
    const { group, summary, aliases = [] } = listedCommand
    const command = program.command(name).summary(summary).aliases(aliases).helpGroup(group)
    // The help of the program needs no more than this, so the file of a command is loaded only if
    // the line mentions the command.
    if (!line || mentionsCommand(line.argv, name, aliases))
      await defineCommand(command, listedCommand)
  }
  if (line?.argv[0] === '__complete') addCompletion(program, io)
  return program
}

/** Creates the program without options and commands, where commander's defaults do not fit. */
function createProgram(
  io: Io,
  line: CommandLine | undefined,
  write: (text: string) => void,
): PlantsCommand {
  const findWidth = () => Math.min(io.stdout.isTerminal ? (io.stdout.columns ?? 80) : 80, 80)
  return (
    new PlantsCommand('plants', io, line ?? { argv: [] })
      .description('Keep lists of plants in a file, in PostgreSQL or on a service.')
      .usage('<command> [options]')
      // Otherwise the program would take `-s` in `create --name -s` for its own option.
      .enablePositionalOptions()
      .exitOverride()
      .showSuggestionAfterError(false)
      .helpOption('-h, --help', 'show this help')
      .helpCommand(false)
      .version(version, '-V, --version', 'show the version')
      .configureOutput({
        writeOut: write,
        writeErr: write,
        getOutHelpWidth: findWidth,
        getErrHelpWidth: findWidth,
        // Without this, commander would open the stream of stdout.
        getOutHasColors: () => false,
      })
      .addExamples(
        'plants create --id 1 --name Fern --tag shade',
        'plants list --search fern',
        'plants import list.xlsx',
      )
      .addHelpText('after', '\nMore: plants help COMMAND, plants help TOPIC, man plants')
  )
}

/** Loads the file of a command, which adds its options, its handler and its subcommands. */
async function defineCommand(
  command: PlantsCommand,
  { globalOptions, formats, topic, load }: ListedCommand,
): Promise<void> {
  const { define } = await load()
  define(command)
  if (command.commands.length > 0)
    command.usage('<command> [options]').helpCommand('help [command]', 'show help for a command')
  const page = topic === undefined ? '' : `\nMore: plants help ${topic}`
  for (const commandOrSubcommand of [command, ...command.commands])
    if (commandOrSubcommand instanceof PlantsCommand) {
      commandOrSubcommand.addGlobalOptions(globalOptions, formats)
      commandOrSubcommand.addHelpText('after', `\nGlobal options: plants --help${page}`)
    }
}

/**
 * Lists the commands that are added for a line. A line that begins with a command needs only this
 * one. Help, and the hint for a wrong name, need all commands, which take a millisecond.
 */
function listCommands(line: CommandLine | undefined) {
  const commands = [...listedCommands]
  const firstWord = line?.argv.slice(0, 1) ?? []
  const command = commands.find(([name, { aliases = [] }]) =>
    mentionsCommand(firstWord, name, aliases),
  )
  return command && command[0] !== 'help' ? [command] : commands
}

function mentionsCommand(
  words: readonly string[],
  name: string,
  aliases: readonly string[],
): boolean {
  return words.some((word) => word === name || aliases.includes(word))
}

/** Adds the hidden command that completion scripts call with the line that is being typed. */
function addCompletion(program: PlantsCommand, io: Io): void {
  program
    .command('__complete', { hidden: true })
    .argument('[shell]')
    .argument('[line]', '', '')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async (shell: string | undefined, text: string) => {
      const { printCompletions } = await import('../commands/completion.js')
      await printCompletions(shell, text, (argv) => buildProgram(io, { argv }), io)
    })
}
