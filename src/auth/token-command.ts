import { execa, parseCommandString } from 'execa'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { maxTimer } from '../platform/runtime.js'
import { failureOf } from './token.js'

interface TokenCommand {
  command: string
  address: string
  storeName: string
  /** In milliseconds. */
  timeout: number
}

/**
 * Runs a command that prints a token, without a shell. Its stdin is empty, since ours may contain a plant;
 * PLANTS_TOKEN_FOR is the address of the store and, on the lines below, of the stores whose commands wait for this one.
 * Throws `unauthorized`, without the output, and the reason of a signal.
 */
export async function runTokenCommand(
  { command, address, storeName, timeout }: TokenCommand,
  io: Io,
): Promise<string> {
  const { env } = io
  const signal = io.handleSignals()
  const [program = '', ...args] = parseCommandString(command)
  const fail = (why: string, hint: string, cause?: unknown) =>
    new PlantsError('unauthorized', `The token command of ${storeName} (${program}) ${why}`, {
      hint,
      cause,
    })
  const waiting = env['PLANTS_TOKEN_FOR']?.split('\n') ?? []
  if (waiting.includes(address))
    throw fail(
      'asks plants for the token that it must print',
      'Make it read the token from another source',
    )
  const child = execa(program, args, {
    stdin: 'ignore',
    stderr: 'inherit',
    reject: false,
    env: { ...withoutSecrets(env), PLANTS_TOKEN_FOR: [address, ...waiting].join('\n') },
    extendEnv: false,
    timeout: Math.min(Math.max(timeout, 1), maxTimer),
    maxBuffer: 65_536,
    cancelSignal: signal,
    forceKillAfterDelay: 500,
  })
  // A background process may keep its stdout open.
  child.once('exit', () => setTimeout(() => child.stdout.destroy(), 200).unref())
  const { stdout, exitCode, signal: killer, timedOut, isMaxBuffer, cause } = await child
  // Ctrl-C signals both processes, and the command may exit before our signal handler runs.
  if (killer === 'SIGINT' || exitCode === 130)
    await new Promise((resolve) => setTimeout(resolve, 100))
  signal.throwIfAborted()
  if (isMaxBuffer) throw fail('printed more than 64 KiB', nothingElse)
  if (timedOut)
    throw fail(
      `did not finish within ${timeout / 1000} s`,
      'If it needs longer, set a longer timeout: --timeout 2m',
    )
  if (exitCode === 0) {
    const token = stdout.trim()
    const why = failureOf(token)
    if (why === undefined) return token
    throw fail(token === '' ? 'printed nothing' : `printed text that ${why}`, nothingElse)
  }
  const code = systemCode(cause)
  const end =
    exitCode === undefined ? `was killed by ${killer}` : `ended with exit code ${exitCode}`
  if (code === undefined) throw fail(end, 'Try it in a shell')
  throw fail(
    `could not be started: ${startFailures[code] ?? code}`,
    'Check its name, or use its full path',
    cause,
  )
}

const nothingElse = 'Try it in a shell: it must print a token, and nothing else on stdout'

const startFailures: Record<string, string> = {
  ENOENT: 'there is no such program',
  EACCES: 'permission denied',
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
