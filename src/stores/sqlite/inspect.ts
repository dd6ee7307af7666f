import { constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { retryWhileBusy } from '../../platform/sqlite.js'
import type { FileAddress, FileReport, OpenOptions } from '../store.js'
import { allows, explainFailure, isWritable } from './failure.js'
import { openToPeek, realPathOf, statIfThere } from './file.js'
import { lockedError } from './lock.js'
import { identify } from './schema.js'

/** Looks at a store and at its place, and changes nothing. Throws what opening it to read throws. */
export async function inspect(address: FileAddress, options: OpenOptions): Promise<FileReport> {
  const path = realPathOf(address.path)
  try {
    if (!address.isDefault) statSync(dirname(path)) // only the folder of the program's own place is made when it is not there
    const stats = statIfThere(path)
    const isEmpty = stats === undefined || (stats.isFile() && stats.size === 0)
    const exists = !isEmpty && (await holdsStore(path, options))
    const place = existing(path)
    const { bavail, bsize, type } = statfsSync(place, { bigint: true })
    return {
      exists,
      owner: stats?.uid,
      isWritable: place === path ? isWritable(path) : allows(place, constants.W_OK),
      free: bavail * bsize,
      network: networks.get(type & 0xffffffffn),
    }
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/** Whether a file that is there holds a store. Throws what SQLite throws, and what `identify` throws for a file of somebody else. */
export async function holdsStore(path: string, options: OpenOptions): Promise<boolean> {
  const db = openToPeek(path)
  try {
    return await retryWhileBusy(
      () => identify(db, path),
      options,
      () => lockedError(path, options.timeout),
    )
  } finally {
    db.close()
  }
}

/** The path, or the nearest folder above it that is there. */
function existing(path: string): string {
  return existsSync(path) ? path : existing(dirname(path))
}

/** By the magic numbers of statfs(2); SQLite's log needs memory that is shared, which these do not have. */
const networks = new Map([
  [0x6969n, 'NFS'],
  [0xfe534d42n, 'SMB'],
  [0xff534d42n, 'CIFS'],
  [0x517bn, 'SMB'],
  [0x01021997n, '9P'],
  [0x5346414fn, 'AFS'],
])
