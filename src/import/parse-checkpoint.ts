import * as z from 'zod/mini'
import { fieldNames } from '../plant/fields.js'

const importAnswersSchema = z.object({
  encoding: z.exactOptional(z.string()),
  sheet: z.exactOptional(z.string()),
  delimiter: z.optional(z.string()),
  columns: z.exactOptional(z.array(z.string())),
  map: z.exactOptional(z.partialRecord(z.enum(fieldNames), z.string())),
  idFrom: z.exactOptional(z.literal('next')),
  match: z.exactOptional(z.literal('name')),
})

/**
 * What a person has answered about the files of an import: the options that the command line would
 * have had. A checkpoint keeps them, so that the same command resumes without questions.
 */
export type ImportAnswers = z.infer<typeof importAnswersSchema>

const count = z.int().check(z.gte(0))

const countsSchema = z.object({
  created: count,
  updated: count,
  skipped: count,
  unknown: count,
  /** The rejected records by their `error`. */
  rejected: z.record(z.string(), count),
})

export type Counts = z.infer<typeof countsSchema>

const rejectsFileSchema = z.object({
  path: z.string(),
  /**
   * Its device and inode. Undefined as long as this import has not written to it; empty if the file
   * is that of another program.
   */
  file: z.exactOptional(z.string()),
  /** In bytes. */
  length: count,
  /** The rows of the last chunk, as long as they may not be in the file. */
  rows: z.string(),
})

export type RejectsFile = z.infer<typeof rejectsFileSchema>

/** The next id may be the one after the last int64. */
const idText = z.string().check(z.regex(/^-?\d{1,20}$/))

const positionSchema = z.object({
  /** The index of the input. */
  input: count,
  /** How many records of the input are done. */
  records: count,
  counts: countsSchema,
  nextId: z.optional(idText),
  rejects: z.optional(rejectsFileSchema),
})

export type Position = z.infer<typeof positionSchema>

const checkpointSchema = z.object({
  version: z.literal(1),
  /** The beginning of its idempotency keys. */
  importId: z.string(),
  /** What the import reads, and how: see `describeSource`. */
  source: z.string(),
  firstId: z.optional(idText),
  /** Whether it was begun with `--restart`, which then resumes it. */
  restart: z.optional(z.literal(true)),
  /** What a person has answered, and no option says. */
  answers: z.optional(importAnswersSchema),
  position: positionSchema,
})

/** The state of an import after its last chunk that is on disk: a row of its store or journal. */
export type Checkpoint = z.infer<typeof checkpointSchema>

const otherVersionSchema = z.object({ version: z.number().check(z.refine((n) => n !== 1)) })

/**
 * Returns `invalid` for what no version of this program has written: another program may have
 * written anything into the store. Of another version, only the number is known.
 */
export function parseCheckpoint(text: string): Checkpoint | 'otherVersion' | 'invalid' {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return 'invalid'
    throw error
  }
  const { data } = checkpointSchema.safeParse(value, { jitless: true })
  if (data) return data
  const { success } = otherVersionSchema.safeParse(value, { jitless: true })
  return success ? 'otherVersion' : 'invalid'
}
