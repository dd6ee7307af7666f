/*
 * Notices that a file is changed while it is imported. An import reads each file twice: the first
 * time to check its encoding and to compute its hash, the second time to store its records. If
 * another program cut or replaced the file in between, a part of a list would be stored as if it
 * were the whole list.
 */
import { statSync } from 'node:fs'
import { inputError, type PlantsError } from '../errors.js'
import type { ImportInput, ImportPlan } from './inputs.js'

/** Adds to each file of a plan the state that it has now. */
export function addFileStates(plan: ImportPlan): ImportPlan {
  return { ...plan, inputs: plan.inputs.map((input) => ({ ...input, state: readState(input) })) }
}

/** @throws {PlantsError} `input` if the file has another state than the plan has */
export function assertUnchanged(input: ImportInput): void {
  if (input.state !== undefined && input.state !== readState(input)) throw createChangeError(input)
}

export function createChangeError({ name }: ImportInput): PlantsError {
  const hint = 'Run the command again when no other program writes to the file'
  return inputError(`${name} was changed while it was read`, hint)
}

/**
 * Returns what a change of a file changes. It is undefined for a pipe, and for a file that does not
 * exist: opening the file explains that.
 */
function readState({ path }: ImportInput): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats?.isFile() ? [stats.dev, stats.ino, stats.size, stats.mtimeNs].join() : undefined
}
