import { execa } from 'execa'
import { PlantsError } from '../errors.js'
import type { Io } from '../platform/io.js'
import { findTokenProblem, omitSecrets } from './token.js'

/**
 * This variable gives the address to the command. If it is set already, a token command has called
 * this program, and would call it again without end.
 */
const loopVariable = 'PLANTS_TOKEN_FOR'

/**
 * Runs the token command of a store, and returns the token that it prints.
 *
 * The command gets an empty stdin, because the one of this process may contain a plant. At the
 * timeout, only its shell is ended: in a process group of its own, the command could be ended as a
 * whole, but could not ask for a password on the terminal.
 *
 * @throws {PlantsError} `unauthorized`, without the output of the command, or the reason of a
 * signal
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
    env: { ...omitSecrets(io.env), [loopVariable]: address },
    extendEnv: false,
    timeout: Math.max(timeoutMs, 1), // execa takes 0 for no timeout
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
