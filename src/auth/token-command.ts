import { execa } from 'execa'
import { PlantsError } from '../errors.js'
import type { Io } from '../platform/io.js'
import { findTokenProblem, withoutSecrets } from './token.js'

/** The address, for the command. Where it is set, a token command has called this program. */
const loopVariable = 'PLANTS_TOKEN_FOR'

/**
 * Its stdin is empty, since ours may contain a plant. At a time-out only the shell is ended: a
 * process group of its own could not ask on the terminal. Throws `unauthorized`, without the
 * output, and the reason of a signal.
 */
export async function runTokenCommand(
  command: string,
  { address, storeName, timeoutMs }: { address: string; storeName: string; timeoutMs: number },
  io: Io,
): Promise<string> {
  const fail = (why: string, cause?: unknown) =>
    new PlantsError('unauthorized', `The token command of ${storeName} printed no token: ${why}`, {
      hint: 'Try it in a shell: it must print a token, and nothing else on stdout',
      cause,
    })
  if (io.env[loopVariable] !== undefined)
    throw fail('a token command cannot call plants with another token command')
  const signal = io.handleSignals()
  const child = execa(command, {
    shell: true,
    stdin: 'ignore',
    stderr: 'inherit',
    reject: false,
    env: { ...withoutSecrets(io.env), [loopVariable]: address },
    extendEnv: false,
    timeout: Math.max(timeoutMs, 1), // for execa, 0 is none
    maxBuffer: 65_536,
    cancelSignal: signal,
    forceKillAfterDelay: 500,
  })
  // A process that the command leaves behind may keep its stdout open.
  child.once('exit', () => setTimeout(() => child.stdout.destroy(), 200).unref())
  const { stdout, exitCode, timedOut, cause } = await child
  signal.throwIfAborted()
  if (timedOut) throw fail(`it did not finish within ${timeoutMs / 1000} s`, cause)
  const end = exitCode === undefined ? 'a signal' : `exit code ${exitCode}`
  if (exitCode !== 0) throw fail(`it failed with ${end}`, cause)
  const token = stdout.trim()
  const failure = findTokenProblem(token)
  if (failure !== undefined) throw fail(`its output ${failure}`)
  return token
}
