import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { execa } from 'execa'
import { withoutSecrets } from '../auth/token.js'
import { isWindows, PlantsError } from '../platform/errors.js'
import { type Io, type Output, withOutput } from '../platform/io.js'
import { type GlobalOptions, mayWaitForPerson } from './command.js'

/**
 * Shows what the action prints in the pager, if stdout is a terminal. As git does, what it writes to a terminal on stderr
 * goes there, too. If a person quits the pager, the action ends with EPIPE; after Ctrl-C, with the interruption, which is
 * not reported.
 */
export async function paged(
  options: GlobalOptions,
  io: Io,
  action: (io: Io) => Promise<void>,
): Promise<void> {
  const isWanted = io.stdout.isTerminal && mayWaitForPerson(options, io)
  const command = isWanted ? pagerIn(io) : undefined
  if (command === undefined) return action(io)

  const { execa } = await import('execa')
  let pager: ReturnType<typeof startPager> | undefined
  const quit = new AbortController()
  const signal = AbortSignal.any([io.handleSignals(), quit.signal])
  // It is started by the first text: an error alone needs no pager.
  const start = () => {
    const started = startPager(execa, command, io)
    started.once('exit', () =>
      quit.abort(Object.assign(new Error('The pager has ended'), { code: 'EPIPE' })),
    )
    return started
  }
  const write = async (text: string) => {
    signal.throwIfAborted()
    pager ??= start()
    if (!pager.stdin.write(text)) await once(pager.stdin, 'drain', { signal }).catch(throwReason)
  }
  const throwReason = (error: unknown) => {
    signal.throwIfAborted()
    throw error
  }
  const shown: Output = {
    isTerminal: true,
    columns: io.stdout.columns,
    write,
    log: write,
    stream: () => io.stdout.stream(),
  }
  const stderr = io.stderr.isTerminal ? shown : io.stderr
  try {
    await action(withOutput(io, { stdout: shown, stderr, handleSignals: () => signal }))
  } catch (error) {
    throw interruptionOf(io) ?? error
  } finally {
    pager?.stdin.end()
    await pager
  }
  const interruption = interruptionOf(io)
  if (interruption) throw interruption
}

/** The person at the pager knows of it. */
function interruptionOf(io: Io): PlantsError | undefined {
  const { reason } = io.handleSignals()
  if (!(reason instanceof PlantsError)) return undefined
  return new PlantsError(reason.kind, reason.message, { isReported: true })
}

function startPager(execute: typeof execa, command: string, { env }: Io) {
  return execute(command, {
    shell: true,
    stdin: 'pipe',
    stdout: 'inherit',
    stderr: 'inherit',
    reject: false,
    buffer: false,
    // Texts are UTF-8, whatever the locale is, which a container often lacks: less would show their bytes.
    env: { LESS: 'FRX', LESSCHARSET: 'utf-8', ...withoutSecrets(env) },
    extendEnv: false,
  })
}

/** The command of a pager that exists; undefined for none. */
function pagerIn({ env }: Io): string | undefined {
  const byDefault = env['TERM'] === 'dumb' ? '' : 'less'
  const command = env['PAGER']?.trim() ?? byDefault
  const [program = ''] = command.split(/\s+/)
  const isNone = command === '' || command === 'cat' || !isOnPath(program, env)
  return isNone ? undefined : command
}

/** A shell that did not find the program would print an error, and the text would be lost. */
function isOnPath(program: string, env: Io['env']): boolean {
  if (/[\\/]/.test(program)) return existsSync(program)
  const folders = (env['PATH'] ?? '').split(delimiter)
  const names = isWindows ? [program, `${program}.exe`] : [program]
  return folders.some((folder) => names.some((name) => existsSync(join(folder, name))))
}
