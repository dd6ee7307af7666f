import { createHash, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import * as z from 'zod/mini'
import { parseJson } from '../../plant/exact-json.js'
import { malformed } from '../../platform/errors.js'
import { grouped } from '../../platform/values.js'
import type { ExistsPolicy } from '../../stores/common/change.js'

const count = z.number().check(z.int(), z.nonnegative())
const int64 = z.string().check(z.regex(/^-?\d{1,20}$/))

const schema = z.object({
  /** the time at which it was complete; first, so that stores find the oldest ones */
  done: z.optional(z.string()),
  /** increased with each change of the other fields */
  version: z.literal(2),
  /** the beginning of its idempotency keys */
  id: z.string().check(z.regex(/^[\da-f-]{36}$/)),
  /** those that determine how records are read and rejected */
  flags: z.record(z.string(), z.optional(z.string())),
  /** for `--id-from next`; a restart begins with it, too, so that it creates no plant twice */
  firstId: z.optional(int64),
  /** the end of the last part that was written */
  position: z
    .object({
      /** its index */
      input: count,
      /** of this input */
      records: count,
      /** `rejected` by their `error` */
      counts: z.object({
        ...{ created: count, updated: count, skipped: count, unknown: count },
        rejected: z.record(z.string(), count),
      }),
      nextId: z.optional(int64),
      /** of the records without an id that were created: the range of their ids, in which others may have some */
      numbered: z.optional(z.object({ first: int64, last: int64, count })),
      /** the length of the rejects file */
      rejects: z.optional(count),
      /** of the last bytes up to there: their SHA-256 */
      rejectsTail: z.optional(z.object({ bytes: count, hash: z.string() })),
      /** of each input that was begun: its size, unless it is a pipe, and the SHA-256 of the bytes that were read */
      files: z.array(z.object({ size: z.optional(count), bytes: count, hash: z.string() })),
    })
    .check(z.refine(({ rejects = 0, rejectsTail: tail }) => (tail?.bytes ?? 0) <= rejects)),
})

export type SavedImport = z.infer<typeof schema>

/** The records of the inputs up to there are settled. */
export type Position = SavedImport['position']

export type Counts = Position['counts']

const start: Position = {
  input: 0,
  records: 0,
  counts: { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} },
  files: [],
}

export function rejectedIn({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

export function settledIn(counts: Counts): number {
  return counts.created + counts.updated + counts.skipped + counts.unknown + rejectedIn(counts)
}

/** What an import that may begin again is called with. */
export interface ImportCommand {
  /** those that determine how records are read and rejected */
  flags: SavedImport['flags']
  ifExists: ExistsPolicy
}

/**
 * How to begin an import again that has stored plants, without creating one of them twice.
 *
 * @param hasOtherFile whether an input has changed since
 */
export function restartHint(
  { flags: before, position: { counts, numbered } }: SavedImport,
  { flags, ifExists }: ImportCommand,
  { isService, hasOtherFile = false }: { isService: boolean; hasOtherFile?: boolean },
): string {
  // What a service was sent may be stored without a checkpoint.
  const isStored = isService || counts.created + counts.updated + counts.unknown > 0
  const isNumbered = numbered !== undefined || (isService && before['--id-from'] !== undefined)
  const changed = changedFlags(before, flags)
  const isMatched = flags['--match'] !== undefined
  const isOther = (flag: string) => determinesPlants(flag) && !(isMatched && /^--(?:match|id-from)$/.test(flag))
  // A record that is read in another way may be rejected, and take no number, or may have another name.
  const isRenumbered = isNumbered && ((hasOtherFile && !isMatched) || changed.some(isOther))
  const isRemapped = changed.includes('--map') && /(?:^|,)id=/.test(`${before['--map']},${flags['--map']}`)
  if (isStored && (isRenumbered || isRemapped || changed.includes('--columns')))
    return `delete what it created, ${isService ? 'and add --restart' : deletion(numbered)}`
  return `add --restart${isStored ? skipping(ifExists, isService) : ''}`
}

/** What makes a repeated import skip what is stored. A service may not be readable. */
export function skipping(ifExists: ExistsPolicy, isService: boolean): string {
  return ifExists === 'error' ? ` --if-exists ${isService ? 'skip' : 'same'}` : ''
}

function deletion(numbered: Position['numbered']): string {
  if (!numbered) return 'and add --restart'
  const { first, last, count } = numbered
  const isWhole = BigInt(last) - BigInt(first) + 1n === BigInt(count)
  return `${isWhole ? '' : 'some of '}the ids ${first} to ${last}, and add --restart`
}

function changedFlags(before: SavedImport['flags'], flags: SavedImport['flags']): string[] {
  const names = new Set([...Object.keys(flags), ...Object.keys(before)])
  return [...names].filter((name) => before[name] !== flags[name])
}

/** The same for the same store and inputs on one machine. */
export function checkpointId(store: string, inputs: string[]): string {
  const key = JSON.stringify([hostname(), store, inputs])
  return createHash('sha256').update(key).digest('hex').slice(0, 32)
}

/** @throws {PlantsError} `malformed`, unless `isRestart`, for a state that is damaged or of an older version */
export function parseCheckpoint(
  state: string | undefined,
  { flags, ifExists }: ImportCommand,
  { isService, isRestart, isOld, inputs }: { isService: boolean; isRestart: boolean; isOld: boolean; inputs: number },
): SavedImport | undefined {
  if (state === undefined) return undefined
  const parsed = parseJson(state)
  const value = 'value' in parsed ? parsed.value : undefined
  const { data } = schema.safeParse(value, { jitless: true })
  const saved = data && data.position.files.length <= inputs ? data : undefined
  if (isRestart || (saved && !isOld)) return saved
  // Which numbers it has given is unknown.
  const isNumbered = flags['--id-from'] !== undefined && flags['--match'] === undefined
  const toSkip = `To begin again, add --restart${skipping(ifExists, isService)}`
  const hint = isNumbered ? 'To begin again, delete what it created, and add --restart' : toSkip
  const old = oldImport.safeParse(value, { jitless: true }).data
  const counts = saved ? saved.position.counts : old && { created: 0, updated: 0, ...old.position?.counters }
  if (!counts) throw malformed('The checkpoint of this import is damaged', hint)
  const stored = `${grouped(counts.created)} created, ${grouped(counts.updated)} updated`
  throw malformed(`An older version of plants began this import: ${stored}`, hint)
}

const oldImport = z.object({
  version: z.literal(1),
  position: z.optional(z.object({ counters: z.object({ created: count, updated: count }) })),
})

/** Whether an import must resume an earlier one. Otherwise it may begin anew: nothing is stored. */
export function isResumed(saved: SavedImport, { flags }: ImportCommand, isService: boolean): boolean {
  return isService || settledIn(saved.position.counts) > 0 || changedFlags(saved.flags, flags).length === 0
}

/** Throws `malformed` for a flag that differs. */
export function assertSameFlags(saved: SavedImport, command: ImportCommand, isService: boolean): void {
  const before = saved.flags
  const [changed] = changedFlags(before, command.flags)
  if (changed === undefined) return
  const was = before[changed] === undefined ? `without ${changed}` : `with ${changed} ${before[changed]}`.trimEnd()
  const hint = `Use the same options, or ${restartHint(saved, command, { isService })}`
  throw malformed(`This import was started ${was}`, hint)
}

/** Whether a flag differs that determines which plants are made. */
export function isReadDifferently({ flags: before }: SavedImport, { flags }: ImportCommand): boolean {
  return changedFlags(before, flags).some(determinesPlants)
}

function determinesPlants(flag: string): boolean {
  return flag !== '--rejects' && flag !== '--atomic'
}

export function newImport(flags: SavedImport['flags'], firstId: bigint | undefined): SavedImport {
  return { version: 2, id: randomUUID(), flags, firstId: firstId?.toString(), position: start }
}
