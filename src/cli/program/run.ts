import { version } from '../../../package.json'
import { isJson } from '../../config/option-values.js'
import { writeAnswer } from '../../output/output.js'
import { Reporter } from '../../output/reporter.js'
import { PlantsError, reasonOfCode, systemCode, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { parseGlobalOptions } from '../command.js'
import { chosenFormat } from '../command-context.js'
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
    if (error instanceof PlantsError && error.isReported) return error.exitCode
    if (error instanceof PlantsError) return await report(error, argv, io)
    return await report(defect(error), argv, io)
  }
}

/** Node has replaced what is not UTF-8 by U+FFFD. */
const notUtf8 = 'An argument is not UTF-8, or holds U+FFFD'
const fromJson = 'Use a UTF-8 terminal, or read the plant from JSON with --file'

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
  if (argv.some((argument) => argument.includes('\uFFFD'))) throw usageError(notUtf8, fromJson)
  const [first = '', second, ...words] = argv
  // In other programs, -v is often the version; here it is that alone, and --verbose with a command.
  if (argv.length === 1 && first === '-v') return writeAnswer(io, `${version}\n`)
  if (first === '__complete' && (second === '--' || second === '.')) {
    const { printCompletions } = await import('../commands/completion.js')
    // PowerShell passes on neither an empty word nor `--`: its script begins each word with a dot.
    const typed = second === '.' ? words.map((word) => word.slice(1)) : words
    return printCompletions(programOf(io), typed, io)
  }
  const page = await runCommand(argv.length > 0 ? argv : ['--help'], io)
  if (page === `${version}\n`) await writeAnswer(io, page)
  else if (page !== '')
    await paged(parseGlobalOptions(argv), io, (shown) => writeAnswer(shown, page))
}

/** Returns the exit code of the error, or of a signal that arrives while stderr is blocked. */
async function report(failure: PlantsError, argv: string[], io: Io): Promise<number> {
  try {
    const options = parseGlobalOptions(argv) // they say how the error is printed
    const format = await chosenFormat(options.output, io)
    await new Reporter(io, isJson(format), options).reportError(failure)
    return failure.exitCode
  } catch (interruption) {
    if (!(interruption instanceof PlantsError)) throw interruption
    return interruption.exitCode
  }
}
