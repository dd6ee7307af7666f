import { CommanderError, Help } from 'commander'
import { version } from '../../../package.json'
import { usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { globalOptions, loadCommand, PlantsCommand, RejectedLine } from '../command.js'
import { listed, programPage } from '../commands/index.js'

/** Runs a command line, and returns the help or the version that it asks for. Throws `usage` for an invalid one. */
export async function runCommand(argv: readonly string[], io: Io): Promise<string> {
  let page = ''
  const write = (text: string) => {
    page += text
  }
  const [first = ''] = argv
  const program = programOf(io, write, argv)
  const words = argv.filter((word) => !word.startsWith('-'))
  // Before a command, it is for the help of that.
  const isHelp = words.length > 0 && /^(-h|--help)$/.test(first)
  try {
    await program
      .parseAsync(isHelp ? ['help', ...words] : argv, { from: 'user' })
      .catch(explainRejected)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error // after the help or the version
    // Commander's answer is the help, as an error.
    if (error.exitCode !== 0 && program.args.length === 0)
      throw usageError('No command was given', 'See: plants --help')
  }
  return page
}

async function explainRejected(error: unknown): Promise<never> {
  throw error instanceof RejectedLine
    ? (await import('../usage-errors.js')).rejectedLineError(error)
    : error
}

/**
 * @param write receives help, and the version
 * @param line the whole command line
 */
export function programOf(
  io: Io,
  write: (page: string) => void = () => undefined,
  line: readonly string[] = [],
) {
  // One of the streams may be a pipe.
  const width = () => [io.stdout, io.stderr].find(({ isTerminal }) => isTerminal)?.columns ?? 100
  const program = new PlantsCommand('plants', line)
    .enablePositionalOptions() // otherwise the value in `create --name -s` would be an option
    .exitOverride()
    .showSuggestionAfterError(false)
    .helpOption('-h, --help', 'show this help')
    .version(version, '-V, --version', 'show the version')
    .configureOutput({
      writeOut: write,
      writeErr: write,
      getOutHelpWidth: width,
      getErrHelpWidth: width,
    })
    .configureHelp({
      minWidthToWrap: 20,
      // Commands have some of its choices.
      optionDescription: (option) =>
        option.long === '--output' ? option.description : new Help().optionDescription(option),
      optionTerm: ({ short, flags }) => (short === undefined ? `    ${flags}` : flags),
      // Beside long terms, a narrow terminal has no room for the meanings.
      formatItem: (term, termWidth, meaning, help) => {
        const width = help.helpWidth ?? 80
        if (width - termWidth >= 24)
          return Help.prototype.formatItem.call(help, term, termWidth, meaning, help)
        return `  ${term}\n        ${help.boxWrap(meaning, width - 8).replaceAll('\n', '\n        ')}`
      },
      subcommandTerm: (command) =>
        `${command.name()} ${command.usage()}`.replace(/ ?\[options\]/, ''),
    })
    .hook('preSubcommand', (_, command) => loadCommand(command, io))
  for (const option of globalOptions()) program.addOption(option)
  for (const [name, [summary, load, ...aliases]] of commandsFor(line))
    program.command(name).summary(summary).aliases(aliases).loadedBy(load)
  // The commands exist by now, and do not inherit this page.
  const formatHelp = (_: unknown, help: Help) => help.boxWrap(programPage(width()), width())
  return program.configureHelp({ ...program.configureHelp(), formatHelp })
}

/** A line that begins with a command needs no other, unless it is `help`. All of them take a millisecond of a start. */
function commandsFor([first = '']: readonly string[]) {
  const all = Object.entries(listed)
  const own = all.find(([name, [, , ...aliases]]) => [name, ...aliases].includes(first))
  return own && first !== 'help' ? [own] : all
}
