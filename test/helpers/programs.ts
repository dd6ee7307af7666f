import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Whether a program is on this machine. */
export function isHere(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, program)))
}
