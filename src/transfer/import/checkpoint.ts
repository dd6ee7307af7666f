import { createHash, randomUUID } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import * as z from 'zod/mini'
import { parseJson } from '../../plant/exact-json.js'
import { AtomicFile, unwritable } from '../../platform/atomic-file.js'
import { malformed, PlantsError, systemCode, systemReason } from '../../platform/errors.js'
import { holdLock, type Lock } from '../../platform/file-lock.js'
import { makeFolder } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { grouped } from '../../platform/values.js'
import type { ExistsPolicy } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'

const count = z.number().check(z.int(), z.nonnegative())
const int64 = z.string().check(z.regex(/^-?\d{1,20}$/))

const schema = z.object({
  /** increased with each change of the other fields */
  version: z.literal(2),
  /** the beginning of its idempotency keys */
  id: z.string().check(z.regex(/^[\da-f-]{36}$/)),
  /** those that determine how records are read and rejected */
  flags: z.record(z.string(), z.optional(z.string())),
  /** for `--id-from next`; a restart begins with it, too, so that it creates no plant twice */
  firstId: z.optional(int64),
  /** the end of the last part that was written */
  position: z.object({
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
    /** of each input that was begun: its size, unless it is a pipe, and the SHA-256 of the bytes that were read */
    files: z.array(z.object({ size: z.optional(count), bytes: count, hash: z.string() })),
  }),
})

export type SavedImport = z.infer<typeof schema>

/** The records of the inputs up to there are settled. */
export type Position = SavedImport['position']

export type Counts = Position['counts']

export const start: Position = {
  input: 0,
  records: 0,
  counts: { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} },
  files: [],
}

type CheckpointStore = Pick<Store, 'checkpoint' | 'write'>

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
  // A record that is read in another way may be rejected, and take no number.
  const isRenumbered = isNumbered && (hasOtherFile || changed.some((name) => name !== '--rejects'))
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

/**
 * What an earlier run has kept, in the store with its plants or in a journal for a service, or a new import.
 *
 * @throws {PlantsError} `malformed`, unless it `isRestart`, for a checkpoint that is damaged, of an older version, or of
 *   other flags
 */
export async function findImport(
  lock: ImportLock | undefined,
  store: CheckpointStore,
  command: ImportCommand,
  isRestart: boolean,
): Promise<{ saved: SavedImport; isNew: boolean; rejectsLength: number | undefined }> {
  const { flags, ifExists } = command
  const isService = !store.checkpoint
  const value = lock && (await readCheckpoint(lock, store))
  const earlier = schema.safeParse(value, { jitless: true }).data
  if (value !== undefined && !isRestart) {
    const old = oldImport.safeParse(value, { jitless: true }).data
    const { created = 0, updated = 0 } = old?.position?.counters ?? {}
    const stored = `${grouped(created)} created, ${grouped(updated)} updated`
    // It is not known which numbers it has given.
    const isNumbered = flags['--id-from'] !== undefined
    const toSkip = `To begin again, add --restart${skipping(ifExists, isService)}`
    const hint = isNumbered ? 'To begin again, delete what it created, and add --restart' : toSkip
    if (old) throw malformed(`An older version of plants began this import: ${stored}`, hint)
    if (!earlier) throw malformed('The checkpoint of this import is damaged', hint)
    const before = earlier.flags
    const [changed] = changedFlags(before, flags)
    if (changed === undefined) return { saved: earlier, isNew: false, rejectsLength: earlier.position.rejects ?? 0 }
    const was = before[changed] === undefined ? `without ${changed}` : `with ${changed} ${before[changed]}`
    if (isService || settledIn(earlier.position.counts) > 0)
      throw malformed(
        `This import was started ${was}`,
        `Use the same options, or ${restartHint(earlier, command, { isService })}`,
      )
  }
  const isSame = (flag: string) => earlier !== undefined && earlier.flags[flag] === flags[flag]
  const firstId = isSame('--id-from') ? earlier?.firstId : undefined
  const saved: SavedImport = { version: 2, id: randomUUID(), flags, firstId, position: start }
  return { saved, isNew: true, rejectsLength: isSame('--rejects') ? 0 : undefined }
}

const oldImport = z.object({
  version: z.literal(1),
  position: z.optional(z.object({ counters: z.object({ created: count, updated: count }) })),
})

/** Null for what is not JSON. */
async function readCheckpoint({ name, journal }: ImportLock, store: CheckpointStore): Promise<unknown> {
  let text: string | undefined
  try {
    text = store.checkpoint ? await store.checkpoint(name) : readFileSync(journal, 'utf8')
  } catch (error) {
    const reason = systemReason(error)
    if (store.checkpoint || reason === undefined) throw error
    if (systemCode(error) === 'ENOENT') return undefined
    throw malformed(`The journal ${journal} could not be read: ${reason}`, 'It says what is stored: repair it', error)
  }
  if (text === undefined) return undefined
  const parsed = parseJson(text)
  return 'value' in parsed ? parsed.value : null
}

/** Between parts. Without an import, the checkpoint is removed. Throws when another process has taken over the lock. */
export async function keepImport(
  lock: ImportLock,
  store: CheckpointStore,
  saved: SavedImport | undefined,
): Promise<void> {
  lock.assertHeld()
  const state = saved && JSON.stringify(saved)
  if (store.checkpoint) await store.write([], { checkpoint: { id: lock.name, state } })
  else if (state === undefined) rmSync(lock.journal, { force: true })
  else writeJournal(lock, state)
}

export interface ImportLock extends Lock {
  /** the same for the same store and inputs on one machine */
  name: string
  journal: string
}

export async function whileAlone<T>(
  store: string,
  inputs: string[],
  io: Io,
  action: (lock: ImportLock) => Promise<T>,
): Promise<T> {
  const key = JSON.stringify([hostname(), store, inputs])
  const name = createHash('sha256').update(key).digest('hex').slice(0, 32)
  const directory = io.env['PLANTS_STATE_DIR'] ? io.resolvePath(io.env['PLANTS_STATE_DIR']) : await io.stateFolder()
  const path = join(directory, 'imports', name)
  let hasBegun = false
  try {
    makeFolder(dirname(path))
    return await holdLock(`${path}.lock`, { timeoutMs: 0, clock: io }, (lock) => {
      hasBegun = true
      return action({ ...lock, name, journal: `${path}.json` })
    })
  } catch (error) {
    if (hasBegun) throw error
    if (!(error instanceof PlantsError)) throw unwritable(`The lock of this import in ${dirname(path)}`, error, hint)
    if (!error.retryable) throw error
    const message = 'Another plants process is importing the same inputs into this store'
    throw new PlantsError('unavailable', message, { hint: 'Wait for it', retryable: true, cause: error })
  }
}

export function writeJournal({ journal, assertHeld }: ImportLock, text: string): void {
  let file: AtomicFile | undefined
  try {
    file = new AtomicFile(journal)
    writeFileSync(file.fd, `${text}\n`)
    assertHeld()
    file.commit()
  } catch (error) {
    throw unwritable(`The journal ${journal}`, error, hint)
  } finally {
    file?.discard()
  }
}

const hint = 'Free some space, or choose another directory with the variable PLANTS_STATE_DIR'
