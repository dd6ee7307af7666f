/*
 * Defines the format of a checkpoint, and parses it.
 *
 * A checkpoint is JSON in a store. Any program, or another version of this one, may have written
 * it, so a schema checks it before it is used. If a change of this file gives an old checkpoint
 * another meaning, `version` must change, too.
 */
import * as z from 'zod/mini'
import { fieldNames } from '../plant/fields.js'
import { type Counts, countFinishedRecords } from './counts.js'

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
 * The answers of a person about the files of an import, as the options that have the same meaning.
 * The checkpoint keeps them, so that the same command resumes without questions.
 */
export type ImportAnswers = z.infer<typeof importAnswersSchema>

const count = z.int().check(z.gte(0))

const countsSchema = z.object({
  created: count,
  updated: count,
  skipped: count,
  rejected: z.record(z.string(), count),
}) satisfies z.ZodMiniType<Counts>

const rejectsFileSchema = z.object({
  path: z.string(),
  /**
   * The device and the inode of the file, such as `2049:131`. The value is undefined as long as
   * this import has not written to the file, and empty if the file belongs to another program.
   */
  file: z.exactOptional(z.string()),
  /** The length of the file in bytes after this import has written to it. */
  length: count,
  /**
   * The rows that must be appended to the file for the last chunk. It is empty when they are in the
   * file. The checkpoint is stored, so this member keeps its name.
   */
  rows: z.string(),
})

/** What a checkpoint says about the rejects file: see `rejects-file.ts`. */
export type RejectsFile = z.infer<typeof rejectsFileSchema>

/**
 * Ids are strings, because JSON has no int64. After the last int64, the next id is out of range.
 */
const idString = z.string().check(z.regex(/^-?\d{1,20}$/))

const positionSchema = z.object({
  /** The index of the input that is being read. */
  input: count,
  /** How many records of this input have an outcome. */
  records: count,
  counts: countsSchema,
  nextId: z.optional(idString),
  rejects: z.optional(rejectsFileSchema),
  /**
   * Whether a service has surely stored nothing of the import, because each change that was sent
   * has an outcome. Without it, changes after the position may be stored.
   */
  isNothingStored: z.optional(z.literal(true)),
})

/** How far an import is: all records before the position have outcomes. */
export type Position = z.infer<typeof positionSchema>

const membersSchema = z.object({
  version: z.literal(1),
  /** The idempotency keys of the creates begin with this id. */
  importId: z.uuid(),
  /** What the import reads, and how: see `describeSource`. */
  source: z.string(),
  /** The first generated id; undefined if the import generates none. */
  firstId: z.optional(idString),
  /** Whether the import was begun with `--restart`. The same option then resumes it. */
  restart: z.optional(z.literal(true)),
  answers: z.optional(importAnswersSchema),
  /**
   * How many processes have begun or resumed an import into a service. Each of them saves a higher
   * number before it sends anything, so that no process before it can save anything more.
   */
  runs: z.optional(count),
  position: positionSchema,
})

const checkpointSchema = membersSchema.check(
  // The counts are of all files, and `records` is of the file that is being read.
  z.refine(({ firstId, position }) => {
    const finishedCount = countFinishedRecords(position.counts)
    const isFirstInput = position.input === 0
    const isCounted = isFirstInput
      ? finishedCount === position.records
      : finishedCount >= position.records
    return isCounted && (firstId === undefined) === (position.nextId === undefined)
  }),
)

/** The state of an import after the last chunk that is on disk. */
export type Checkpoint = z.infer<typeof checkpointSchema>

const otherVersionSchema = z.object({ version: z.number().check(z.refine((n) => n !== 1)) })

/**
 * @returns `otherVersion` if another version of this program has written the checkpoint in a format
 * that this version does not know; `invalid` if no version has written it
 */
export function parseCheckpoint(state: string): Checkpoint | 'otherVersion' | 'invalid' {
  let value: unknown
  try {
    value = JSON.parse(state)
  } catch (error) {
    if (error instanceof SyntaxError) return 'invalid'
    throw error
  }
  const { data } = checkpointSchema.safeParse(value, { jitless: true })
  if (data) return data
  const { success } = otherVersionSchema.safeParse(value, { jitless: true })
  return success ? 'otherVersion' : 'invalid'
}
