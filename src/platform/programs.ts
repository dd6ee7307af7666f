import { spawnSync } from 'node:child_process'
import { posixWord } from './errors.js'
import type { Io } from './io.js'

/** Shows a text with what PAGER says, which a shell runs, or with less. False where that cannot be started. */
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

/** Opens a file in the editor of VISUAL or EDITOR, which a shell runs, or in vi; on Windows, in Notepad. Returns why that failed. */
export function openInEditor(path: string, { env }: Pick<Io, 'env'>): string | undefined {
  const isWindows = process.platform === 'win32'
  const editor = env['VISUAL'] || env['EDITOR'] || (isWindows ? 'notepad' : 'vi')
  const word = isWindows ? `"${path}"` : posixWord(path) // cmd runs it there; no path of Windows has a quote
  const { status } = spawnSync(`${editor} ${word}`, { shell: true, stdio: 'inherit', env })
  if (status === 0) return undefined
  return `The editor ${editor} ${status === null ? 'could not be run' : `ended with exit code ${status}`}`
}
