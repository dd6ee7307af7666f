import { version } from '../../../package.json'
import { writeAnswer, writeError } from '../../output/output.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { isJson } from '../../platform/values.js'
import { shownAddress } from '../../stores/common/address.js'
import type { Program } from './program.js'

/** Runs a command line, and returns its exit code. Never throws. */
export async function run(argv: string[], io: Io): Promise<number> {
  addSecrets(argv, io)
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

/** Prints the error, and returns its exit code, or that of a signal that arrives while stderr is blocked. */
async function report(failure: PlantsError, argv: string[], io: Io): Promise<number> {
  try {
    const [{ globalFlagsIn }, { chosenFormat, mayColor }] = await Promise.all([import('./program.js'), import('../context.js')])
    const flags = globalFlagsIn(argv)
    const errors = isJson(await chosenFormat(flags.output, io)) ? 'json' : 'text'
    await writeError(io, failure, { errors, colors: (stream) => mayColor(stream, flags, io) })
    return failure.exitCode
  } catch (interruption) {
    if (!(interruption instanceof PlantsError)) throw interruption
    return interruption.exitCode
  }
}

/** Collects the secrets of a run before anything is printed. Those in arguments are rejected, but another error could print them first. */
function addSecrets(argv: string[], { env, secrets }: Io): void {
  const tokens = ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN'].map((name) => env[name]?.trim())
  for (const argument of argv) {
    tokens.push(/plants_[\w-]{43}/.exec(argument)?.[0]) // of `plants tokens create`
    tokens.push(/^(?:PLANTS_TOKEN|PLANTS_SERVE_TOKEN|PGPASSWORD)=(.+)$/s.exec(argument)?.[1])
  }
  for (const token of tokens) if (token) secrets.add(token)
  const addresses = argv
    .map((argument) => argument.replace(/^(?:--[\w-]+=|-[a-z])/, ''))
    .filter((argument) => /[@/]|%40|password/i.test(argument))
  for (const text of [...addresses, env['PLANTS_STORE']]) {
    if (!text) continue
    const found: string[] = []
    const shown = shownAddress(text, (secret) => found.push(secret))
    for (const secret of found) if (!shown.includes(secret)) secrets.add(secret) // otherwise the *** would show which word is the secret
  }
}

async function runProgram(argv: string[], io: Io): Promise<void> {
  if (!io.argumentsAreExact()) throw malformed('An argument is not UTF-8', 'Use a UTF-8 terminal, or read the plant from JSON with --file')
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) return writeAnswer(io, `${version}\n`)
  const [{ CommanderError }, { Program }] = await Promise.all([import('commander'), import('./program.js')])
  const program = new Program(io)
  const [first, second, ...rest] = argv
  if (first === '__complete' && (second === '--' || second === '--next')) {
    const words = second === '--' ? rest : [...rest.slice(1), '']
    return (await import('./complete.js')).printCompletions(words, program, io)
  }
  try {
    await program.parse(argv)
  } catch (error) {
    if (error instanceof CommanderError) throw (await import('./usage.js')).usageError(argv, program, error)
    throw error
  }
  if (program.page !== '') await writePage(program, io)
}

/** Prints help, in a pager if it is longer than an interactive terminal. */
async function writePage({ page, flags }: Program, io: Io): Promise<void> {
  const { isInteractive } = await import('../context.js')
  const isLong = io.stdout.isTerminal && page.split('\n').length > io.stdout.rows
  if (isLong && isInteractive(flags, io) && io.env['TERM'] !== 'dumb') {
    io.signal.throwIfAborted() // from here on the pager receives Ctrl-C
    const { showInPager } = await import('../../platform/pager.js')
    const { withoutSecrets } = await import('../../auth/child-environment.js')
    if (showInPager(page, { env: withoutSecrets(io.env) })) return
  }
  await writeAnswer(io, page)
}
