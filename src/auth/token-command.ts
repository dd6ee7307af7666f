import { execa } from 'execa'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { failureOf } from './token.js'

interface TokenCommand {
  command: string
  address: string
  storeName: string
  timeoutMs: number
}

/** The address of the store, for the command. Where it is set, a command has called this program. */
const loopVariable = 'PLANTS_TOKEN_FOR'

/**
 * Runs a command that prints a token, through a shell. Its stdin is empty, since ours may contain a plant. At a time-out
 * only the shell is ended, or what replaced it by `exec`: a process group of its own could not ask on the terminal. Throws
 * `unauthorized`, without the output, and the reason of a signal.
 */
export async function runTokenCommand(
  { command, address, storeName, timeoutMs }: TokenCommand,
  io: Io,
): Promise<string> {
  const fail = (why: string, cause?: unknown) =>
    new PlantsError('unauthorized', `The token command of ${storeName} gave no token: ${why}`, {
      hint: 'Try it in a shell: it must print a token, and nothing else on stdout',
      cause,
    })
  if (io.env[loopVariable] !== undefined) throw fail('it was called by a token command')
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
  const { stdout, exitCode, timedOut, isMaxBuffer, cause } = await child
  signal.throwIfAborted()
  if (timedOut) throw fail(`it did not finish within ${timeoutMs / 1000} s`, cause)
  if (isMaxBuffer) throw fail('it printed more than 64 KiB', cause)
  const end = exitCode === undefined ? 'a signal' : `exit code ${exitCode}`
  if (exitCode !== 0) throw fail(`it ended with ${end}`, cause)
  const token = stdout.trim()
  const failure = failureOf(token)
  if (failure !== undefined) throw fail(`what it printed ${failure}`)
  return token
}

/** Keeps the secrets that other programs need, such as the password of a proxy. */
function withoutSecrets(env: Io['env']): Io['env'] {
  const isSecret = (name: string, text = '') =>
    ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD'].includes(name) ||
    (name === 'PLANTS_STORE' && /[@=]/.test(text)) // such as a database with its password
  return Object.fromEntries(
    Object.entries(env).filter(([name, text]) => !isSecret(name.toUpperCase(), text)),
  )
}
