import { version } from '../../../package.json'
import { mayColor, writeAnswer, writeError } from '../../output/output.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { isJson } from '../../platform/values.js'
import { pageStyle, programPage } from '../help/program-page.js'

/** Returns the exit code. Never throws. */
export async function run(argv: string[], io: Io): Promise<number> {
  addSecrets(io)
  try {
    await runProgram(argv, io)
    return 0
  } catch (error) {
    if (systemCode(error) === 'EPIPE') return 0
    if (error instanceof PlantsError) return await report(error, argv, io)
    const message = `Internal error, a bug in plants: ${error instanceof Error ? error.message : String(error)}`
    const hint = 'Please report it, with this text, your command, and what this prints: plants version --output json'
    return await report(new PlantsError('defect', message, { hint, cause: error }), argv, io)
  }
}

/** Returns the exit code of the error, or of a signal that arrives while stderr is blocked. */
async function report(failure: PlantsError, argv: string[], io: Io): Promise<number> {
  try {
    const [{ globalFlagsIn }, { chosenFormat }] = await Promise.all([import('./program.js'), import('../context.js')])
    const flags = globalFlagsIn(argv)
    const errors = isJson(await chosenFormat(flags.output, io)) ? 'json' : 'text'
    await writeError(io, failure, { errors, colors: (stream) => mayColor(stream, flags, io) })
    return failure.exitCode
  } catch (interruption) {
    if (!(interruption instanceof PlantsError)) throw interruption
    return interruption.exitCode
  }
}

/** Called before anything is printed, because these tokens are not read by all commands. */
function addSecrets({ env, secrets }: Io): void {
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = env[name]?.trim()
    if (token) secrets.add(token)
  }
}

async function runProgram(argv: string[], io: Io): Promise<void> {
  if (!io.argumentsAreExact())
    throw malformed('An argument is not UTF-8', 'Use a UTF-8 terminal, or read the plant from JSON with --file')
  const [first, second, ...words] = argv
  // These two start faster without the parser.
  if (argv.length === 1 && ['--version', '-V', '-v'].includes(first ?? '')) return writeAnswer(io, `${version}\n`)
  if (argv.length === 0 || (argv.length === 1 && (first === '--help' || first === '-h' || first === 'help'))) {
    const { width, styleTitle } = pageStyle({}, io)
    return writeAnswer(io, programPage(width, styleTitle))
  }
  const [{ CommanderError }, { Program }] = await Promise.all([import('commander'), import('./program.js')])
  const program = new Program(io, first)
  if (first === '__complete' && second === '--')
    return (await import('./complete.js')).printCompletions(words, program, io)
  try {
    await program.parse(argv)
  } catch (error) {
    if (error instanceof CommanderError) throw (await import('./usage.js')).usageError(argv, program, error)
    throw error
  }
  if (program.page !== '') await writeAnswer(io, program.page)
}
