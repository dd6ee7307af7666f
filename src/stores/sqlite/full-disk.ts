/*
 * Explains a full disk where the size of what was written is known. SQLite also reports a full disk
 * for its temporary files, so that errors.ts can only assume which disk it is. VACUUM INTO and the
 * statements of a restore need no temporary files.
 */
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { fullDiskHint, ignoreSystemError, PlantsError } from '../../errors.js'
import { findPrimaryCode, findSystemCode, SQLITE_FULL } from '../../platform/sqlite.js'

/** Returns false for a disk that can hold no more files, which another hint explains. */
export function isDiskFull(error: unknown, path: string): boolean {
  const isFull = findPrimaryCode(error) === SQLITE_FULL || findSystemCode(error) === 'ENOSPC'
  return isFull && readSpace(path)?.ffree !== 0
}

/** @returns the free bytes of the disk of a path; undefined if the system does not say */
export function findFreeBytes(path: string): number | undefined {
  const space = readSpace(path)
  return space && space.bavail * space.bsize
}

function readSpace(path: string) {
  return ignoreSystemError(() => statfsSync(dirname(path)))
}

/**
 * @param subject the message begins with this, and so names the file
 * @param neededBytes an estimate of what the file needs
 * @param freeBytes how much of it the disk has
 */
export function createFullDiskError(
  subject: string,
  {
    neededBytes,
    freeBytes,
    cause,
  }: { neededBytes: number; freeBytes?: number | undefined; cause: unknown },
): PlantsError {
  const freeClause = freeBytes === undefined ? '' : `, and ${formatSize(freeBytes)} are free`
  const message = `${subject} could not be written: its disk is full. It needs about ${formatSize(neededBytes)}${freeClause}`
  return new PlantsError('unavailable', message, { hint: fullDiskHint, cause })
}

function formatSize(bytes: number): string {
  return bytes < 1_048_576
    ? `${Math.ceil(bytes / 1024)} KiB`
    : `${(bytes / 1_048_576).toFixed(1)} MiB`
}
