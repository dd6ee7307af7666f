/*
 * Notices that a file is changed while it is imported. An import reads each file twice: the first
 * time to check its encoding, the second time to store its records. If another program cut or
 * replaced the file in between, a part of a list would be stored as if it were the whole list. If
 * it wrote the file again, the row between two blocks would be the beginning of an old row and the
 * end of a new one. So the file is compared after each block that is read, and before each chunk is
 * stored, which may have been read before the change.
 */
import { fstatSync, statSync } from 'node:fs'
import { createInputError, ignoreSystemError, type PlantsError } from '../errors.js'

export interface ImportInput {
  /** The absolute path, or `-` for stdin. */
  path: string
  /** The name as it was typed, for messages. */
  name: string
  /** The state of the file before it was read; undefined if it need not stay the same. */
  fingerprint?: string | undefined
}

/** Adds the state that the file has now. */
export function addFingerprint(input: ImportInput): ImportInput {
  return { ...input, fingerprint: readFingerprint(input) }
}

/** @throws {PlantsError} `input` if the file has changed since `addFingerprint` */
export function assertUnchanged(input: ImportInput): void {
  if (input.fingerprint !== undefined && input.fingerprint !== readFingerprint(input))
    throw createChangeError(input)
}

function createChangeError({ name }: ImportInput): PlantsError {
  const hint = 'Run the command again when no other program writes to the file'
  return createInputError(`${name} was changed while it was read`, hint)
}

/**
 * Returns what a change of a file changes. It is undefined for a pipe, and for a file that cannot
 * be opened: opening it explains why. A program that copies a file may set the time of its contents
 * (`mtime`) to an earlier one, but not the time of its last change (`ctime`).
 */
function readFingerprint({ path }: ImportInput): string | undefined {
  const options = { bigint: true } as const
  const stats = ignoreSystemError(() =>
    path === '-' ? fstatSync(0, options) : statSync(path, options),
  )
  if (!stats?.isFile()) return undefined
  return [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join()
}
