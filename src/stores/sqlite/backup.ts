import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PlantsError, shellWord } from '../../platform/errors.js'
import type { BackupOptions, Copy, FileAddress, OpenOptions } from '../store.js'
import { copyStore, explainCopy, unchanged } from './copy.js'
import { explainFailure } from './failure.js'
import { fileHasContent, identityOf, isPartOf, realPathOf, reportOwner } from './file.js'
import { holdsStore } from './inspect.js'
import { withSnapshot } from './snapshot.js'

/** What `backUp` of `stores/open.ts` does. */
export async function backUp(address: FileAddress, file: string, options: BackupOptions): Promise<Copy | undefined> {
  const path = realPathOf(address.path)
  const target = targetOf(file, path, options)
  if (isPartOf(path, target)) throw refuse(target, 'is the store itself, or belongs to it', 'Choose another file for the backup')
  try {
    await reportOwner(address, options)
    return await withSnapshot(path, options, async (snapshot) => {
      await checkTarget(target, options)
      return copyStore(snapshot, target, options.clock)
    })
  } catch (error) {
    throw explainFailure(unchanged(error, options.clock), path)
  }
}

/** The real path of what is replaced: nothing follows a link that takes its place after this. */
function targetOf(file: string, store: string, options: BackupOptions): string {
  try {
    const target = options.targetOf(file)
    return join(realPathOf(dirname(target)), basename(target))
  } catch (error) {
    throw explainCopy(error, file, store)
  }
}

/** A file that is there already is replaced only if it is a store that nobody uses. */
async function checkTarget(target: string, options: OpenOptions): Promise<void> {
  const identity = identityOf(target)
  if (!identity.includes(':') && identity !== 'none') return // and what the system says of it, it will say again
  const stats = statSync(target, { throwIfNoEntry: false })
  if (stats?.isDirectory()) throw refuse(target, 'is a folder', `Name a file in it: ${shellWord(`${target}/plants.bak`)}`)
  if (stats && !stats.isFile()) throw refuse(target, 'is a device or a pipe', 'Choose another file for the backup')
  // The log of another file would be taken for that of the backup.
  if (['-wal', '-journal'].some((suffix) => fileHasContent(target + suffix))) {
    throw refuse(target, 'is in use, or was not closed: a log is beside it', 'Choose another file for the backup')
  }
  if (!stats?.size) return
  if (!(await isStore(target, options))) throw refuse(target, 'holds no store', mayGo)
  if (isWal(target)) throw refuse(target, 'is a store that is used as one, and no backup', mayGo)
}

/** A backup is no store that was written to: that would have turned the write-ahead log on (https://sqlite.org/fileformat.html, 1.3). */
function isWal(path: string): boolean {
  const fd = openSync(path, 'r')
  try {
    const header = Buffer.alloc(20)
    readSync(fd, header, 0, header.length, 0)
    return header[18] === 2
  } finally {
    closeSync(fd)
  }
}

async function isStore(target: string, options: OpenOptions): Promise<boolean> {
  try {
    return await holdsStore(target, options)
  } catch (error) {
    const explained = explainFailure(error, target)
    if (!(explained instanceof PlantsError) || explained.retryable || explained.kind !== 'unavailable') throw explained
    throw new PlantsError('malformed', `A backup would replace what is no backup: ${explained.message}`, { hint: mayGo, cause: error })
  }
}

const mayGo = 'Choose another file for the backup, or delete this one first'

function refuse(target: string, why: string, hint: string): PlantsError {
  return new PlantsError('malformed', `${target} cannot be replaced by a backup: it ${why}`, { hint })
}
