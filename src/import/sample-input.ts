/*
 * Reads the sample that the dialogue of an import shows of a file that cannot be imported yet: its
 * first rows, whatever their columns are.
 */
import { readSample, type Sample } from '../formats/detect.js'
import type { Io } from '../platform/io.js'
import type { ImportInput } from './input-file.js'
import { type ImportPlan, useContent } from './inputs.js'

/** @throws {PlantsError} as an import does, except if columns are missing */
export function sampleInput(input: ImportInput, plan: ImportPlan, io: Io): Promise<Sample> {
  return useContent(input, io, (content) => readSample(content, plan))
}
