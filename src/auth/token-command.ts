import { execa, parseCommandString } from 'execa'
import { maxTimer } from '../platform/clock.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { shownAddress } from '../stores/registry.js'
import type { CredentialContext } from './credentials.js'
import { failureOf } from './token.js'

/**
 * Runs the command that prints a store's token. Its words are split as execa does, no shell reads them, and nothing is on its stdin, which
 * may hold a plant. PLANTS_TOKEN_FOR is the address of the store, and below it those that wait for this one. The command prints the token,
 * or `{"token":"…","expires":"…"}` (RFC 3339); its stderr is passed through.
 *
 * @returns the token, and until when it is valid (ISO 8601), if the command says so
 * @throws {PlantsError} `unauthorized` when it gives no token that is valid now, and the reason of a signal; neither repeats what it has printed
 */
export async function runTokenCommand(
  command: string,
  { name: address }: { name: string },
  { storeName = address, timeout }: CredentialContext,
  io: Io,
): Promise<{ token: string; expires: string | undefined }> {
  const words = parseCommandString(command)
  const fail: Fail = (why, hint, cause) =>
    new PlantsError('unauthorized', `The token command of ${storeName} (${words[0] ?? ''}) ${why}`, { hint, cause })
  const waiting = io.env['PLANTS_TOKEN_FOR']?.split('\n') ?? []
  if (waiting.includes(address)) throw fail('asks for the very token that it should print', 'Let it take the token from elsewhere')
  // What this program reads as a secret is left out; what others need, such as the password of a proxy, stays.
  const isSecret = (name: string, text = '') =>
    ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD'].includes(name) || (name === 'PLANTS_STORE' && shownAddress(text) !== text)
  const kept = Object.entries(io.env).filter(([name, text]) => !isSecret(name.toUpperCase(), text))
  const env = { ...Object.fromEntries(kept), PLANTS_TOKEN_FOR: [address, ...waiting].join('\n') }
  const { token, expires } = parseOutput(await outputOf(words, { env, timeout }, io, fail), fail)
  if (expires !== undefined && expires.getTime() <= io.time())
    throw fail(`printed a token that has expired, on ${expires.toISOString()}`, 'Renew it where the command takes it from')
  return { token, expires: expires?.toISOString() }
}

type Fail = (why: string, hint: string, cause?: unknown) => PlantsError

const checkCommand = 'Try it in a shell: it must print a token, or {"token":"…","expires":"…"}, and nothing else on stdout'

const maxOutputBytes = 65_536

/** What the command prints until it ends; a process that it leaves running may keep its stdout open, and is not waited for. */
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
  // Ctrl-C is for both of us, and the command may be the first to end of it.
  if (killer === 'SIGINT' || exitCode === 130) await new Promise((resolve) => setTimeout(resolve, 100))
  signal.throwIfAborted()
  if (length > maxOutputBytes) throw fail('printed more than 64 KiB', checkCommand)
  if (timedOut) throw fail(`did not end within ${timeout / 1000} s`, 'If it needs longer, wait longer with --timeout 2m')
  if (exitCode === 0) return new TextDecoder().decode(Buffer.concat(chunks)) // without a byte order mark
  const code = systemCode(cause)
  if (code === undefined)
    throw fail(exitCode === undefined ? `was ended by ${killer}` : `ended with exit code ${exitCode}`, 'Try it in a shell')
  throw fail(`could not be started: ${startFailures[code] ?? code}`, 'Check the name, or give its whole path', cause)
}

const startFailures: Record<string, string> = { ENOENT: 'there is no such program', EACCES: 'this user may not run it' }

function parseOutput(text: string, fail: Fail): { token: string; expires: Date | undefined } {
  let printed: { token?: unknown; expires?: unknown } = { token: text.trim() }
  try {
    if (text.trimStart().startsWith('{')) printed = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw fail('printed broken JSON', checkCommand) // whose error would repeat it
  }
  const { token, expires } = printed
  if (typeof token !== 'string') throw fail('printed JSON without a token', checkCommand)
  const why = failureOf(token)
  if (why !== undefined) throw fail(token === '' ? 'printed nothing' : `printed a text that ${why}`, checkCommand)
  if (expires === undefined || expires === null) return { token, expires: undefined }
  const time = typeof expires === 'string' && rfc3339.test(expires) ? new Date(expires) : undefined
  if (time !== undefined && !Number.isNaN(time.getTime())) return { token, expires: time }
  throw fail('printed "expires" that is no time', 'It must be a time such as 2026-01-02T03:04:05Z')
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
