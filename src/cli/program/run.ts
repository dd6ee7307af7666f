import { version } from '../../../package.json'
import { findChoice, isJson, outputFormats } from '../../config/option-values.js'
import { EffectiveSettings } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { PlantsError, systemCode, usageError } from '../../errors.js'
import { writeStdout } from '../../output/output.js'
import { Reporter } from '../../output/reporter.js'
import type { Io } from '../../platform/io.js'
import { type CommandLine, PlantsCommand } from '../command.js'
import { runInPager } from '../pager.js'
import { runCommand } from './program.js'

/** Returns the exit code. */
export async function run(argv: string[], io: Io): Promise<number> {
  // Not all commands read these tokens.
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = io.env[name]?.trim()
    if (token) io.secrets.add(token)
  }
  const line: CommandLine = { argv: argv.length > 0 ? argv : ['--help'] }
  try {
    await runLine(line, io)
    return 0
  } catch (error) {
    if (systemCode(error) === 'EPIPE') return 0
    const failure = error instanceof PlantsError ? error : defect(error)
    if (!failure.isReported) await report(failure, line, io)
    return failure.exitCode
  }
}

function defect(cause: unknown): PlantsError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new PlantsError('internalError', `Internal error (a bug in plants): ${reason}`, {
    hint: 'Report it with this text, your command and the output of: plants doctor',
    cause,
  })
}

async function runLine(line: CommandLine, io: Io): Promise<void> {
  const { argv } = line
  // Node has replaced what is not UTF-8 by U+FFFD.
  if (argv.some((word) => word.includes('\uFFFD')))
    line.failure = usageError(
      'An argument is not UTF-8, or contains U+FFFD',
      'Use a UTF-8 terminal, or read the plant from JSON with --file',
    )
  // Elsewhere, -v is the version. With a command it is --verbose.
  if (argv.length === 1 && argv[0] === '-v') return writeStdout(io, `${version}\n`)
  const page = await runCommand(line, io)
  if (page === `${version}\n`) await writeStdout(io, page)
  else if (page !== '')
    await runInPager(line.command?.readOptions() ?? {}, io, (shown) => writeStdout(shown, page))
}

/** In the format of the line or of the settings, even if these are what is wrong. */
async function report(failure: PlantsError, line: CommandLine, io: Io): Promise<void> {
  const { command = new PlantsCommand('plants', io, line) } = line
  const { output, color = true } = command.readOptions()
  // Which store is meant may be what is wrong.
  command.setOptionValueWithSource('store', 'local', 'cli')
  let format = findChoice(outputFormats, output)
  try {
    const file = await readSettings(io, 0)
    format = new EffectiveSettings({ values: command, io, file }).getValue('output')
  } catch (error) {
    // Settings that are wrong as well are reported by the next command.
    if (!(error instanceof PlantsError)) throw error
  }
  await new Reporter(io, isJson(format), { color }).reportError(failure)
}
