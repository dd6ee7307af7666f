import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** The file that a link leads to, which may not be there yet: people keep such files elsewhere, under version control. */
export function targetOf(path: string, links = 0): string {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path
  if (links === mostLinks) throw Object.assign(new Error('too many links'), { code: 'ELOOP' })
  return targetOf(resolve(realpathSync(dirname(path)), readlinkSync(path)), links + 1)
}

/** How many the system follows. */
const mostLinks = 40
