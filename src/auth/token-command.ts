import { execa, parseCommandString } from 'execa'
import { maxTimer } from '../platform/clock.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { failureOf } from './token.js'

interface TokenCommand {
  command: string
  address: string
  storeName: string
  /** milliseconds */
  timeout: number
}

/**
 * Runs a command that prints a token, or `{"token":"…","expires":"…"}` (RFC 3339), without a shell. Its stdin is empty,
 * since ours may contain a plant. PLANTS_TOKEN_FOR contains the address of the store and, on the lines below, of the
 * stores whose commands wait for this one. Throws `unauthorized`, without the output, and the reason of a signal.
 */
export async function runTokenCommand({ command, address, storeName, timeout }: TokenCommand, io: Io) {
  const words = parseCommandString(command)
  const fail: Fail = (why, hint, cause) =>
    new PlantsError('unauthorized', `The token command of ${storeName} (${words[0] ?? ''}) ${why}`, { hint, cause })
  const waiting = io.env['PLANTS_TOKEN_FOR']?.split('\n') ?? []
  if (waiting.includes(address))
    throw fail('asks plants for the token that it must print', 'Make it read the token from another source')
  const env = { ...childEnvironment(io.env), PLANTS_TOKEN_FOR: [address, ...waiting].join('\n') }
  const { token, expires } = parseOutput(await outputOf(words, { env, timeout }, io, fail), fail)
  if (expires !== undefined && expires.getTime() <= io.time())
    throw fail(`printed a token that expired on ${expires.toISOString()}`, 'Renew the token where the command reads it')
  return { token, expires: expires?.toISOString() }
}

type Fail = (why: string, hint: string, cause?: unknown) => PlantsError

const checkCommand =
  'Try it in a shell: it must print a token, or {"token":"…","expires":"…"}, and nothing else on stdout'

const maxOutputBytes = 65_536

/** Does not wait for a background process that keeps the stdout of the command open. */
async function outputOf(
  [program = '', ...args]: string[],
  { env, timeout }: { env: Io['env']; timeout: number },
  { signal }: Io,
  fail: Fail,
): Promise<string> {
  const child = execa(program, args, {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
    buffer: false,
    encoding: 'buffer',
    reject: false,
    env,
    extendEnv: false,
    timeout: Math.min(Math.max(timeout, 1), maxTimer),
    cancelSignal: signal,
    forceKillAfterDelay: 500,
  })
  const chunks: Buffer[] = []
  let length = 0
  child.stdout.on('data', (chunk: Buffer) => {
    length += chunk.length
    chunks.push(chunk)
    if (length > maxOutputBytes) child.kill('SIGKILL')
  })
  child.once('exit', () => setTimeout(() => child.stdout.destroy(), 200).unref())
  const { exitCode, signal: killer, timedOut, cause } = await child
  // Ctrl-C signals both processes, and the command may exit before our signal handler runs.
  if (killer === 'SIGINT' || exitCode === 130) await new Promise((resolve) => setTimeout(resolve, 100))
  signal.throwIfAborted()
  if (length > maxOutputBytes) throw fail('printed more than 64 KiB', checkCommand)
  if (timedOut)
    throw fail(`did not finish within ${timeout / 1000} s`, 'If it needs longer, set a longer timeout: --timeout 2m')
  if (exitCode === 0) return new TextDecoder().decode(Buffer.concat(chunks)) // without a byte order mark
  const code = systemCode(cause)
  const end = exitCode === undefined ? `was killed by ${killer}` : `ended with exit code ${exitCode}`
  if (code === undefined) throw fail(end, 'Try it in a shell')
  throw fail(`could not be started: ${startFailures[code] ?? code}`, 'Check its name, or use its full path', cause)
}

const startFailures: Record<string, string> = { ENOENT: 'there is no such program', EACCES: 'permission denied' }

function parseOutput(text: string, fail: Fail): { token: string; expires: Date | undefined } {
  let printed: { token?: unknown; expires?: unknown } = { token: text.trim() }
  try {
    if (text.trimStart().startsWith('{')) printed = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw fail('printed invalid JSON', checkCommand) // without a cause, whose message would repeat the output
  }
  const { token, expires } = printed
  if (typeof token !== 'string') throw fail('printed JSON without a token', checkCommand)
  const why = failureOf(token)
  if (why !== undefined) throw fail(token === '' ? 'printed nothing' : `printed text that ${why}`, checkCommand)
  if (expires === undefined || expires === null) return { token, expires: undefined }
  const time = typeof expires === 'string' && rfc3339.test(expires) ? new Date(expires) : undefined
  if (time !== undefined && !Number.isNaN(time.getTime())) return { token, expires: time }
  throw fail('printed an invalid "expires"', 'It must be a time such as 2026-01-02T03:04:05Z')
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** Keeps the secrets that other programs need, such as the password of a proxy. */
function childEnvironment(env: Io['env']): Io['env'] {
  const isSecret = (name: string, text = '') =>
    ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD'].includes(name) ||
    (name === 'PLANTS_STORE' && /[@=]/.test(text)) // such as a database with its password
  return Object.fromEntries(Object.entries(env).filter(([name, text]) => !isSecret(name.toUpperCase(), text)))
}
