import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PlantsError } from './errors.js'
import type { Io } from './io.js'

/**
 * The file that a link leads to, which may not be there yet: people keep such files elsewhere, under version control.
 *
 * @throws {PlantsError} `malformed` for a link of another user, who would choose which of this user's files is written
 */
export function targetOf(path: string, { trusts }: Pick<Io, 'trusts'>, links = 0): string {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats?.isSymbolicLink() !== true) return path
  if (!trusts(stats.uid)) {
    const message = `${path} is a link of another user (uid ${stats.uid}), and is not followed`
    throw new PlantsError('malformed', message, { hint: 'Name another file, or remove the link' })
  }
  if (links === mostLinks) throw Object.assign(new Error('too many links'), { code: 'ELOOP' })
  return targetOf(resolve(realpathSync(dirname(path)), readlinkSync(path)), { trusts }, links + 1)
}

/** How many the system follows. */
const mostLinks = 40
