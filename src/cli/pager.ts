/*
 * Shows long output in a pager, such as less. An action writes to the pager instead of stdout. It
 * can end in four ways:
 *
 * - The action has written everything. The pager runs on until the person quits it.
 * - The person quits the pager. Then the action ends with EPIPE.
 * - A signal arrives, such as Ctrl-C. Then the action ends with the error of the signal.
 * - The terminal closes, and the pager with it. Then the command is terminated, even if the system
 *   sends no signal to this process.
 *
 * The pager is started when the action writes for the first time, because an action without output
 * needs no pager. The program always waits for the end of the pager, which owns the terminal until
 * then.
 */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { omitSecrets } from '../auth/token.js'
import { isWindows, PlantsError } from '../errors.js'
import { type Io, type Output, replaceOutput } from '../platform/io.js'
import { type GlobalOptions, mayWaitForPerson } from './global-options.js'

/**
 * less ends by itself if all fits on the screen, passes colors on, and leaves the text on the
 * screen. Its prompt says how to leave it. The less of BusyBox knows no prompts, and would take an
 * M or an S in it for an option.
 */
const lessOptions = 'FRXPs?e(END):space for more., q to quit'

/**
 * Shows the output of an action in a pager, if stdout is a terminal. Its warnings are shown in the
 * pager, too, as git does. If a person quits the pager, the next write of the action fails
 * with EPIPE, as if a pipe were closed. After Ctrl-C, the action ends with an error that is not
 * reported.
 */
export async function runInPager(
  options: Pick<GlobalOptions, 'input'>,
  io: Io,
  action: (io: Io) => Promise<void>,
): Promise<void> {
  const mayUsePager = io.stdout.isTerminal && mayWaitForPerson(options, io)
  const command = mayUsePager ? findPager(io) : undefined
  if (command === undefined) return action(io)

  const { execa } = await import('execa')
  const pagerEnd = new AbortController()
  const signal = AbortSignal.any([io.getStopSignal(), pagerEnd.signal])
  const startPager = () => {
    const child = execa(command, {
      shell: true,
      stdin: 'pipe',
      stdout: 'inherit',
      stderr: 'inherit',
      reject: false,
      buffer: false,
      // Without a locale, as in a container, less would show the bytes of texts that are not ASCII.
      env: { LESS: lessOptions, LESSCHARSET: 'utf-8', ...omitSecrets(io.env) },
      extendEnv: false,
    })
    child.once('exit', () =>
      pagerEnd.abort(Object.assign(new Error('The pager has ended'), { code: 'EPIPE' })),
    )
    return child
  }
  let pager: ReturnType<typeof startPager> | undefined
  const write = async (text: string) => {
    signal.throwIfAborted()
    pager ??= startPager()
    if (pager.stdin.write(text)) return
    // A person who reads slowly must not make the output pile up in memory.
    await once(pager.stdin, 'drain', { signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      throw error
    })
  }
  const { columns, openStream } = io.stdout
  const pagerOutput: Output = { isTerminal: true, columns, write, log: write, openStream }
  const stderr = io.stderr.isTerminal ? pagerOutput : io.stderr
  let failure: unknown
  try {
    await action(replaceOutput(io, { stdout: pagerOutput, stderr, getStopSignal: () => signal }))
  } catch (error) {
    failure = error
  }
  pager?.stdin.end()
  await pager
  if (!io.stdout.isTerminal)
    throw new PlantsError('terminated', 'The terminal was closed', { isReported: true })
  if (failure === undefined) return
  const { reason } = io.getStopSignal()
  // The person who pressed Ctrl-C at the pager needs no message.
  throw reason instanceof PlantsError
    ? new PlantsError(reason.kind, reason.message, { isReported: true })
    : failure
}

/**
 * Finds the command of the pager: PAGER, or else less.
 *
 * @returns undefined if no pager is wanted, or its program is not installed. In the latter case, a
 * shell would print an error instead of the output.
 */
function findPager({ env }: Io): string | undefined {
  const command = env['PAGER']?.trim() ?? (env['TERM'] === 'dumb' ? '' : 'less')
  const [program = ''] = command.split(/\s+/)
  if (program === '' || command === 'cat') return undefined
  const isPath = /[\\/]/.test(program)
  const folders = isPath ? [''] : (env['PATH'] ?? '').split(delimiter)
  const names = isWindows ? [program, `${program}.exe`] : [program]
  const isInstalled = folders.some((folder) => names.some((name) => existsSync(join(folder, name))))
  return isInstalled ? command : undefined
}
