import { writeAnswer, writeError } from '../output/output.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { shownAddress } from '../stores/registry.js'
import { pathTo } from './commands/index.js'
import { helpPage, widthFor } from './help/page.js'
import { topicOf } from './help/topics.js'
import { outputFlag } from './output-flag.js'
import { writeVersion } from './version.js'

/**
 * Runs the command line: does what the arguments ask for, and tells how it ended.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code of the contract's table; it never throws
 */
export async function run(argv: string[], io: Io): Promise<number> {
  hideTokens(io)
  hidePasswords(argv, io)
  try {
    await dispatch(argv, io)
    return 0
  } catch (error) {
    if (systemCode(error) === 'EPIPE') return 0
    const failure = error instanceof PlantsError ? error : defect(error)
    return await tell(failure, argv, io)
  }
}

/** Tells what failed, and gives its exit code, or that of a signal that comes while nobody reads it. */
async function tell(failure: PlantsError, argv: string[], io: Io): Promise<number> {
  try {
    const { errorFormat, mayColor } = await import('./context.js')
    await writeError(io, failure, {
      errors: await errorFormat(outputFlag(argv), io),
      colors: (stream) => mayColor(stream, { color: !argv.includes('--no-color') }, io),
    })
    return failure.exitCode
  } catch (interruption) {
    if (!(interruption instanceof PlantsError)) throw interruption
    return interruption.exitCode
  }
}

/** Before anything can be said about them. */
function hideTokens({ env, secrets }: Io): void {
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = env[name]?.trim()
    if (token) secrets.add(token)
  }
}

/** Those in arguments, which are refused there, but perhaps not before they are named in an error, and in PLANTS_STORE. */
function hidePasswords(argv: string[], { env, secrets }: Io): void {
  for (const argument of argv) {
    const [token] = /plants_[\w-]{43}/.exec(argument) ?? [] // one of `plants tokens create`
    const [, ofVariable] = /^(?:PLANTS_TOKEN|PLANTS_SERVE_TOKEN|PGPASSWORD)=(.+)$/s.exec(argument) ?? []
    for (const secret of [token, ofVariable]) if (secret !== undefined) secrets.add(secret)
  }
  const addresses = argv.map((argument) => argument.replace(/^--[\w-]+=/, '')).filter((argument) => /[@/]|%40|password/i.test(argument))
  for (const text of [...addresses, env['PLANTS_STORE'] ?? '']) {
    const found: string[] = []
    const shown = shownAddress(text, (secret) => found.push(secret))
    for (const secret of found) if (!shown.includes(secret)) secrets.add(secret) // else a *** in its place would say which word it is
  }
}

/** What is asked for most often and needs nothing but data is answered here; the rest loads what reads a command line. */
async function dispatch(argv: string[], io: Io): Promise<void> {
  if (!io.argumentsAreExact()) {
    throw new PlantsError('malformed', 'An argument is not UTF-8', { hint: 'Use a UTF-8 terminal, or give the plant as JSON with --file' })
  }
  if (argv[0] === '__complete' && argv[1] === '--') return (await import('./completion/answer.js')).answerCompletion(argv.slice(2), io)
  const page = helpFor(argv, io)
  if (page !== undefined) return writeAnswer(io, await page, 'Run it again')
  if (argv.length === 1 && ['-V', '--version'].includes(argv[0] ?? '')) return writeVersion(argv, io)
  const { runCommand } = await import('./program.js')
  await runCommand(argv, io)
}

/** The help that a command line asks for, if it asks for nothing else. */
function helpFor(argv: string[], io: Io): string | Promise<string> | undefined {
  const [first, ...rest] = argv
  const topic = first === 'help' ? topicOf(rest) : undefined
  if (topic) return topic.page(widthFor(io))
  const words = first === 'help' ? rest : argv.filter((argument) => argument !== '-h' && argument !== '--help')
  const path = words.length < argv.length || argv.length === 0 ? pathTo(words) : undefined
  return path && helpPage(path, widthFor(io))
}

function defect(cause: unknown): PlantsError {
  const hint = 'Please report it, with what you ran'
  return new PlantsError('defect', `A mistake in plants, not in what you did: ${cause instanceof Error ? cause.message : String(cause)}`, {
    hint,
    cause,
  })
}
