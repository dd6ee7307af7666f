import { parseArgs } from 'node:util'
import { version } from '../../../package.json'
import { choiceIn, isJson, outputFormats } from '../../config/option-values.js'
import { EffectiveSettings } from '../../config/resolve.js'
import { readSettings } from '../../config/settings-file.js'
import { PlantsError, systemCode, usageError } from '../../errors.js'
import { writeAnswer } from '../../output/output.js'
import { Reporter } from '../../output/reporter.js'
import type { Io } from '../../platform/io.js'
import { runInPager } from '../pager.js'
import { buildProgram, runCommand } from './program.js'

/** Returns the exit code. */
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

function defect(cause: unknown): PlantsError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new PlantsError('defect', `Internal error, a bug in plants: ${reason}`, {
    hint: 'Please report it, with this text, your command, and what this prints: plants doctor',
    cause,
  })
}

async function runLine(argv: string[], io: Io): Promise<void> {
  // Node has replaced what is not UTF-8 by U+FFFD.
  if (argv.some((argument) => argument.includes('\uFFFD')))
    throw usageError(
      'An argument is not UTF-8, or holds U+FFFD',
      'Use a UTF-8 terminal, or read the plant from JSON with --file',
    )
  const [first = '', ...others] = argv
  // Elsewhere, -v is the version. With a command it is --verbose.
  if (first === '-v' && others.length === 0) return writeAnswer(io, `${version}\n`)
  if (first === '__complete') {
    const { printCompletions } = await import('../commands/completion.js')
    return printCompletions(others, (line) => buildProgram(io, line), io)
  }
  const page = await runCommand(argv.length > 0 ? argv : ['--help'], io)
  if (page === `${version}\n`) await writeAnswer(io, page)
  else if (page !== '')
    await runInPager(parseOutputOptions(argv), io, (shown) => writeAnswer(shown, page))
}

/** In the format of the line or of the settings, even if these are what is wrong. */
async function report(failure: PlantsError, argv: string[], io: Io): Promise<void> {
  // Which store is meant may be what is wrong.
  const options = { ...parseOutputOptions(argv), store: 'local' }
  let format = choiceIn(outputFormats, options.output)
  try {
    const file = await readSettings(io, 0)
    format = new EffectiveSettings({ options, io, file }).value('output')
  } catch (error) {
    // Settings that are wrong as well are reported by the next command.
    if (!(error instanceof PlantsError)) throw error
  }
  await new Reporter(io, isJson(format), options).reportError(failure)
}

/** The options that say how an error or a page is shown, also of a line that commander rejects. */
function parseOutputOptions(args: string[]) {
  const { values } = parseArgs({
    args,
    strict: false,
    allowNegative: true,
    options: {
      output: { type: 'string', short: 'o' },
      input: { type: 'boolean' },
      color: { type: 'boolean' },
    },
  })
  const { output, input, color } = values
  return {
    ...(typeof output === 'string' && { output: output.replace(/^=/, '') }),
    input: input !== false,
    color: color !== false,
  }
}
