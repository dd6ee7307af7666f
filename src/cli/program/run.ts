import { parseArgs } from 'node:util'
import { version } from '../../../package.json'
import { choiceIn, isJson, type OutputFormat, outputFormats } from '../../config/option-values.js'
import { EffectiveSettings } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { writeAnswer } from '../../output/output.js'
import { Reporter } from '../../output/reporter.js'
import { PlantsError, reasonOfCode, systemCode, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import type { GlobalOptions } from '../command.js'
import { paged } from '../pager.js'
import { programOf, runCommand } from './program.js'

/** Returns the exit code. Never throws. */
export async function run(argv: string[], io: Io): Promise<number> {
  // Not all commands read these tokens.
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = io.env[name]?.trim()
    if (token) io.secrets.add(token)
  }
  try {
    await runLine(argv, io)
    return 0
  } catch (error) {
    if (systemCode(error) === 'EPIPE') return 0
    const failure = error instanceof PlantsError ? error : defect(error)
    if (!failure.isReported) await report(failure, argv, io)
    return failure.exitCode
  }
}

/** A system error that nobody expected, such as of a current directory that was removed, need not be a bug. */
function defect(error: unknown): PlantsError {
  const isOfSystem = reasonOfCode(systemCode(error) ?? '') !== undefined
  const what = isOfSystem ? 'Unexpected system error' : 'Internal error, a bug in plants'
  const hint =
    'Please report it, with this text, your command, and what this prints: plants version --output json'
  const message = `${what}: ${error instanceof Error ? error.message : String(error)}`
  return new PlantsError('defect', message, { hint: isOfSystem ? undefined : hint, cause: error })
}

async function runLine(argv: string[], io: Io): Promise<void> {
  // Node has replaced what is not UTF-8 by U+FFFD.
  if (argv.some((argument) => argument.includes('\uFFFD')))
    throw usageError(
      'An argument is not UTF-8, or holds U+FFFD',
      'Use a UTF-8 terminal, or read the plant from JSON with --file',
    )
  const [first = '', ...others] = argv
  // In other programs, -v is often the version; here it is that alone, and --verbose with a command.
  if (first === '-v' && others.length === 0) return writeAnswer(io, `${version}\n`)
  if (first === '__complete') {
    const { printCompletions } = await import('../commands/completion.js')
    return printCompletions(others, (line) => programOf(io, line), io)
  }
  const page = await runCommand(argv.length > 0 ? argv : ['--help'], io)
  if (page === `${version}\n`) await writeAnswer(io, page)
  else if (page !== '') await paged(globalOptionsIn(argv), io, (shown) => writeAnswer(shown, page))
}

async function report(failure: PlantsError, argv: string[], io: Io): Promise<void> {
  const options = globalOptionsIn(argv)
  const format = await formatOfErrors(options, io)
  await new Reporter(io, isJson(format), options).reportError(failure)
}

/** Those that say how an error or a page is printed, also in a line that commander rejects. */
function globalOptionsIn(args: string[]): GlobalOptions {
  const { values } = parseArgs({
    args,
    strict: false,
    allowNegative: true,
    options: {
      output: { type: 'string', short: 'o' },
      quiet: { type: 'boolean', short: 'q' },
      verbose: { type: 'boolean', short: 'v' },
      input: { type: 'boolean' },
      color: { type: 'boolean' },
    },
  })
  const { output, quiet, verbose, input, color } = values
  return {
    ...(typeof output === 'string' && { output: output.replace(/^=/, '') }),
    quiet: quiet === true,
    verbose: verbose === true,
    input: input !== false,
    color: color !== false,
  }
}

/** The setting `output`, even if others are invalid; undefined if it is invalid itself. */
async function formatOfErrors(
  { output }: GlobalOptions,
  io: Io,
): Promise<OutputFormat | undefined> {
  try {
    const file = await readSettings(io)
    return new EffectiveSettings({ options: { output }, io, file }).value('output')
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return choiceIn(outputFormats, output)
  }
}
