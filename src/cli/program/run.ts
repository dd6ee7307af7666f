import { version } from '../../../package.json'
import { terminalWidth, writeAnswer } from '../../output/output.js'
import { Reporter } from '../../output/reporter.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { isJson } from '../../platform/values.js'
import { programPage } from '../commands/index.js'

/** Returns the exit code. Never throws. */
export async function run(argv: string[], io: Io): Promise<number> {
  // these tokens are not read by all commands
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = io.env[name]?.trim()
    if (token) io.secrets.add(token)
  }
  try {
    await runLine(argv, io)
    return 0
  } catch (error) {
    if (systemCode(error) === 'EPIPE') return 0
    if (error instanceof PlantsError) return await report(error, argv, io)
    const message = `Internal error, a bug in plants: ${error instanceof Error ? error.message : String(error)}`
    const hint = 'Please report it, with this text, your command, and what this prints: plants version --output json'
    return await report(new PlantsError('defect', message, { hint, cause: error }), argv, io)
  }
}

async function runLine(argv: string[], io: Io): Promise<void> {
  if (!io.argumentsAreExact())
    throw malformed('An argument is not UTF-8', 'Use a UTF-8 terminal, or read the plant from JSON with --file')
  const [first = '', second, ...words] = argv
  // These two start faster without the parser.
  if (argv.length === 1 && ['--version', '-V', '-v'].includes(first)) return writeAnswer(io, `${version}\n`)
  if (argv.length === 0 || (argv.length === 1 && ['--help', '-h', 'help'].includes(first)))
    return writeAnswer(io, programPage(terminalWidth(io)))
  const { programOf, runCommand } = await import('./program.js')
  if (first === '__complete' && second === '--') {
    const { printCompletions } = await import('../commands/completion.js')
    return printCompletions(programOf(io), words, io)
  }
  const page = await runCommand(argv, io)
  if (page !== '') await writeAnswer(io, page)
}

/** Returns the exit code of the error, or of a signal that arrives while stderr is blocked. */
async function report(failure: PlantsError, argv: string[], io: Io): Promise<number> {
  try {
    const [{ globalOptionsIn }, { chosenFormat }] = await Promise.all([
      import('./program.js'),
      import('../command-context.js'),
    ])
    const options = globalOptionsIn(argv)
    const format = await chosenFormat(options.output, io)
    await new Reporter(io, isJson(format), options).reportError(failure)
    return failure.exitCode
  } catch (interruption) {
    if (!(interruption instanceof PlantsError)) throw interruption
    return interruption.exitCode
  }
}
