import { bugs } from '../../../package.json'
import { writeError } from '../../output/output.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { shownAddress } from '../../stores/common/address.js'
import { errorFormat, mayColor } from '../context.js'
import { outputFlags, runProgram } from './program.js'

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
    const hint = `Please report it, with the command that you ran: ${bugs.url}`
    return await report(new PlantsError('defect', message, { hint, cause: error }), argv, io)
  }
}

/** Prints the error, and returns its exit code, or that of a signal that arrives while stderr is blocked. */
async function report(failure: PlantsError, argv: string[], io: Io): Promise<number> {
  try {
    const flags = outputFlags(argv)
    const errors = await errorFormat(flags.output, io)
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
  for (const text of [...addresses, env['PLANTS_STORE'] ?? '']) {
    const found: string[] = []
    const shown = shownAddress(text, (secret) => found.push(secret))
    for (const secret of found) if (!shown.includes(secret)) secrets.add(secret) // otherwise the *** would show which word is the secret
  }
}
