/*
 * Reads the sample that the dialogue of an import shows of a file that cannot be imported yet: its
 * first rows, whatever their columns are.
 */
import { readSample, type Sample } from '../formats/detect.js'
import type { Io } from '../platform/io.js'
import type { ImportInput } from './input-file.js'
import { type ImportPlan, openContent } from './inputs.js'

/** @throws {PlantsError} as an import does, except if columns are missing */
export async function sampleInput(input: ImportInput, plan: ImportPlan, io: Io): Promise<Sample> {
  const content = await openContent(input, io)
  try {
    return await readSample(content, plan)
  } finally {
    content.close()
  }
}
