/*
 * Notices that a file is changed while it is imported. An import reads each file twice: the first
 * time to check its encoding and to compute its hash, the second time to store its records. If
 * another program cut or replaced the file in between, a part of a list would be stored as if it
 * were the whole list.
 */
import { statSync } from 'node:fs'
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

/** @throws {PlantsError} `input` if the file has changed since `addState` */
export function assertUnchanged(input: ImportInput): void {
  if (input.fingerprint !== undefined && input.fingerprint !== readFingerprint(input))
    throw createChangeError(input)
}

export function createChangeError({ name }: ImportInput): PlantsError {
  const hint = 'Run the command again when no other program writes to the file'
  return createInputError(`${name} was changed while it was read`, hint)
}

/**
 * Returns what a change of a file changes. It is undefined for a pipe, and for a file that cannot
 * be opened: opening it explains why.
 */
function readFingerprint({ path }: ImportInput): string | undefined {
  const stats = ignoreSystemError(() => statSync(path, { bigint: true }))
  return stats?.isFile() ? [stats.dev, stats.ino, stats.size, stats.mtimeNs].join() : undefined
}
