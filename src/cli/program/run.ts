import { version } from '../../../package.json'
import { findChoice, isJson, type OutputFormat, outputFormats } from '../../config/option-values.js'
import { EffectiveSettings } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { createUsageError, getSystemCode, PlantsError } from '../../errors.js'
import { writeStdout } from '../../output/output.js'
import { Reporter } from '../../output/reporter.js'
import type { Io } from '../../platform/io.js'
import { type CommandLine, PlantsCommand } from '../command.js'
import { runInPager } from '../pager.js'
import { runCommand } from './program.js'

/**
 * Runs a command line, reports its error, and returns the exit code. Every error of the program
 * ends here.
 */
export async function run(argv: string[], io: Io): Promise<number> {
  // These tokens are redacted in the output of every command, even if it does not read them.
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = io.env[name]?.trim()
    if (token) io.secrets.add(token)
  }
  const line: CommandLine = { argv: argv.length > 0 ? argv : ['--help'] }
  try {
    await runCommandLine(line, io)
    return 0
  } catch (error) {
    // The reader of stdout has ended, as `head` ends after ten lines. That is not an error.
    if (getSystemCode(error) === 'EPIPE') return 0
    const failure = error instanceof PlantsError ? error : createInternalError(error)
    if (!failure.isReported) await reportFailure(failure, line, io)
    return failure.exitCode
  }
}

function createInternalError(cause: unknown): PlantsError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new PlantsError('internalError', `Internal error (a bug in plants): ${reason}`, {
    hint: 'Report it with this text, your command and the output of: plants doctor',
    cause,
  })
}

async function runCommandLine(line: CommandLine, io: Io): Promise<void> {
  const { argv } = line
  // Node.js has replaced bytes that are not UTF-8 by U+FFFD.
  if (argv.some((word) => word.includes('\uFFFD')))
    line.firstError = createUsageError(
      'An argument is not UTF-8, or contains U+FFFD',
      'Use a UTF-8 terminal, or read the plant from JSON with --file',
    )
  // `plants -v` shows the version, as other programs do. With a command, -v is --verbose.
  if (argv.length === 1 && argv[0] === '-v') return writeStdout(io, `${version}\n`)
  const page = await runCommand(line, io)
  if (page.type === 'version') await writeStdout(io, page.text)
  else if (page.type === 'help')
    await runInPager(line.command?.readOptions() ?? {}, io, (pagedIo) =>
      writeStdout(pagedIo, page.text),
    )
}

/** Prints an error in the format that is in effect, or else in the format of the command line. */
async function reportFailure(failure: PlantsError, line: CommandLine, io: Io): Promise<void> {
  // Without a command, the error came before any option was parsed.
  const { command = new PlantsCommand('plants', io, line) } = line
  const { output, color = true } = command.readOptions()
  const format = (await findFormat(command, io)) ?? findChoice(outputFormats, output)
  await new Reporter(io, isJson(format), { color }).reportError(failure)
}

/**
 * Finds the format that the command line, the environment or the settings choose.
 *
 * @returns undefined if none of them chooses one, or if one of them is not valid
 */
async function findFormat(command: PlantsCommand, io: Io): Promise<OutputFormat | undefined> {
  // An unknown store would be an error of its own, and no store is needed to print an error.
  command.setOptionValueWithSource('store', 'local', 'cli')
  try {
    const file = await readSettings(io)
    return new EffectiveSettings({ optionValues: command, io, file }).getValue('output')
  } catch (error) {
    // Only one error is reported. If the settings are wrong, too, the next command says so.
    if (error instanceof PlantsError) return undefined
    throw error
  }
}
