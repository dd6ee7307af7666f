import { execaSync } from 'execa'
import type { Io } from './io.js'

/**
 * Shows a text with what PAGER says, which a shell runs, or with less. False where that cannot be started.
 *
 * @param env without secrets: a pager runs other programs, and shows what they are given
 */
export function showInPager(text: string, { env }: Pick<Io, 'env'>): boolean {
  const { exitCode, code } = execaSync(env['PAGER'] || 'less', {
    shell: Boolean(env['PAGER']),
    input: text,
    stdout: 'inherit',
    stderr: 'inherit',
    env: { LESS: 'FRX', ...env }, // as git has it
    extendEnv: false,
    reject: false,
  })
  const isStarted = code === undefined || code === 'EPIPE' // when it is left early
  return isStarted && exitCode !== 126 && exitCode !== 127
}
