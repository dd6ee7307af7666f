import { version } from '../../../package.json'
import { findChoice, isJson, type OutputFormat, outputFormats } from '../../config/option-values.js'
import { EffectiveSettings } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { createUsageError, getSystemCode, PlantsError } from '../../errors.js'
import { writeStdout } from '../../output/output.js'
import { Reporter } from '../../output/reporter.js'
import { toJson } from '../../plant/json.js'
import type { Io } from '../../platform/io.js'
import type { CommandLine, PlantsCommand } from '../command.js'
import { buildProgram, runCommand } from './program.js'

/**
 * Runs a command line, reports its error, and returns the exit code. Every error of the program
 * ends here.
 */
export async function run(argv: string[], io: Io): Promise<number> {
  // These tokens are redacted on stderr and in logs, even if the command does not read them.
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = io.env[name]?.trim()
    if (token) io.secrets.add(token)
  }
  const line: CommandLine = { argv: moveHelp(argv) }
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

/** For commander, help that is asked for before a command is that of the program. */
function moveHelp([firstWord = '--help', ...words]: readonly string[]): string[] {
  if (firstWord !== '--help' && firstWord !== '-h') return [firstWord, ...words]
  const index = words.findIndex((word) => word.startsWith('-'))
  return words.toSpliced(index === -1 ? words.length : index, 0, firstWord)
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
    throw createUsageError(
      'An argument is not UTF-8, or contains U+FFFD',
      'Use a UTF-8 terminal, or read the plant from JSON with --file',
    )
  // `plants -v` shows the version, as other programs do. With a command, -v is --verbose.
  if (argv.length === 1 && argv[0] === '-v') return writeStdout(io, `${version}\n`)
  const text = await runCommand(line, io)
  const { describedCommand: command } = line
  if (command && isJson(findOutputOption(argv)))
    return writeStdout(io, `${toJson(await describeHelp(command, io))}\n`)
  if (text !== '') await writeStdout(io, text)
}

/** Describes a command for programs. The line has loaded only the commands that it names. */
async function describeHelp(command: PlantsCommand, io: Io): Promise<object> {
  const { describeCommand, describeProgram } = await import('./describe-commands.js')
  if (command.parent) return describeCommand(command)
  return describeProgram(await buildProgram(io))
}

/** Searches the words of a line, because the parser has stopped at the first wrong one of them. */
function findOutputOption(argv: readonly string[]): OutputFormat | undefined {
  const options = argv.join('\n').matchAll(/^(?:--output|-[a-z]*?o)[=\n]?([a-z]+)$/gim)
  const formats = Array.from(options, ([, text]) => findChoice(outputFormats, text))
  return formats.find((format) => format !== undefined)
}

/** Prints an error in the format that the command line, the environment or the settings choose. */
async function reportFailure(failure: PlantsError, { argv }: CommandLine, io: Io): Promise<void> {
  const format = findOutputOption(argv) ?? (await findFormat(io))
  const color = !argv.includes('--no-color')
  await new Reporter(io, isJson(format), { color }).reportError(failure)
}

/**
 * Finds the format that the environment or the settings choose.
 *
 * @returns undefined if none of them chooses one, or if one of them is not valid
 */
async function findFormat(io: Io): Promise<OutputFormat | undefined> {
  try {
    const file = await readSettings(io)
    // An unknown store would be an error of its own, and no store is needed to print an error.
    return new EffectiveSettings({ options: { store: 'local' }, io, file }).getValue('output')
  } catch (error) {
    // Only one error is reported. If the settings are wrong, too, the next command says so.
    if (error instanceof PlantsError) return undefined
    throw error
  }
}
