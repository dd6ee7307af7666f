import { spawnSync } from 'node:child_process'
import type { Io } from './io.js'

/**
 * Shows a text with what PAGER says, which a shell runs, or with less. False where that cannot be started.
 *
 * @param env without secrets: a pager runs other programs, and shows what they are given
 */
export function showInPager(text: string, { env }: Pick<Io, 'env'>): boolean {
  const { status, error } = spawnSync(env['PAGER'] || 'less', {
    shell: Boolean(env['PAGER']),
    input: text,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: 'FRX', ...env }, // as git has it
  })
  const isLeftEarly = error !== undefined && 'code' in error && error.code === 'EPIPE'
  return (error === undefined || isLeftEarly) && status !== 126 && status !== 127
}
