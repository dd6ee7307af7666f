import { execa } from 'execa'
import { PlantsError } from '../errors.js'
import type { Io } from '../platform/io.js'
import { findTokenProblem, omitSecrets } from './token.js'

/**
 * A token command reads the address of the service from this variable. If this process has the
 * variable, a token command has started this process, and to run the token command again would
 * never end.
 */
const loopVariable = 'PLANTS_TOKEN_FOR'

/**
 * Runs the token command of a store, and returns the token that it prints.
 *
 * The command gets an empty stdin, because the stdin of this process may contain a plant. At the
 * timeout, only the shell of the command is ended, and the programs that it has started may go on.
 * In a separate process group, all these processes could be ended at once. But then the command
 * could not ask for a password, because only the foreground group may read from a terminal.
 *
 * @throws {PlantsError} `unauthorized`, without the output of the command, which may be a secret;
 *   `interrupted` or `terminated` after a signal
 */
export async function runTokenCommand(
  command: string,
  { address, storeName, timeoutMs }: { address: string; storeName: string; timeoutMs: number },
  io: Io,
): Promise<string> {
  const createCommandError = (reason: string, cause?: unknown) =>
    new PlantsError(
      'unauthorized',
      `The token command of ${storeName} printed no token: ${reason}`,
      {
        hint: 'It must print a token, and nothing else, on stdout',
        cause,
      },
    )
  if (io.env[loopVariable] !== undefined)
    throw createCommandError('a token command cannot call plants with another token command')
  const signal = io.getStopSignal()
  const child = execa(command, {
    shell: true,
    stdin: 'ignore',
    stderr: 'inherit',
    reject: false,
    env: { ...omitSecrets(io.env), [loopVariable]: address },
    extendEnv: false,
    timeout: Math.max(timeoutMs, 1), // To execa, 0 means no timeout.
    maxBuffer: 65_536,
    cancelSignal: signal,
    forceKillAfterDelay: 500,
  })
  // A process that the command has left in the background may keep stdout open, and execa would
  // wait for its end.
  child.once('exit', () => setTimeout(() => child.stdout.destroy(), 200).unref())
  const { stdout, exitCode, timedOut, cause } = await child
  signal.throwIfAborted()
  if (timedOut) throw createCommandError(`it did not finish within ${timeoutMs / 1000} s`, cause)
  const exitDescription = exitCode === undefined ? 'a signal' : `exit code ${exitCode}`
  if (exitCode !== 0) throw createCommandError(`it failed with ${exitDescription}`, cause)
  const token = stdout.trim()
  const problem = findTokenProblem(token)
  if (problem !== undefined) throw createCommandError(`it ${problem}`)
  return token
}
