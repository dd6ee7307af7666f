import { createHash, randomUUID } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import * as z from 'zod/mini'
import { parseJson } from '../../plant/exact-json.js'
import { formatNames } from '../../plant/records.js'
import { AtomicFile, unwritable } from '../../platform/atomic-file.js'
import { malformed, PlantsError, systemCode, systemReasons } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { holdLock, type Lock } from '../../platform/file-lock.js'
import { assertNotRedirected, makeFolder } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { Outcome } from '../../stores/common/conflict.js'
import type { Checkpoint, CheckpointStore } from '../../stores/common/store.js'

const count = z.number().check(z.int(), z.nonnegative())
const counts = z.record(z.string(), count)
const int64 = z.string().check(z.regex(/^-?\d{1,20}$/))

const position = z.object({
  /** its index */
  input: count,
  format: z.enum(formatNames),
  reader: z.object({
    format: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
    nextId: z.optional(int64),
  }),
  /** in decompressed bytes of UTF-8 */
  offset: count,
  /** SHA-256 of the inputs up to there */
  hash: z.string(),
  /**
   * The records up to there: `rejected` by their `error`, `otherFields` by the first thousand unknown fields,
   * shortened.
   */
  counters: z.object({
    ...{ created: count, updated: count, skipped: count, rejected: counts, unknown: count, otherFields: counts },
  }),
  rejects: z.optional(z.object({ records: count, reasons: count })),
})

const schema = z.object({
  /** increased with each change of the other fields */
  version: z.literal(1),
  /** the beginning of its idempotency keys */
  id: z.string().check(z.regex(/^[\da-f-]{36}$/)),
  /** those that determine how records are read */
  flags: z.record(z.string(), z.string()),
  /** for `--id-from next`; a restart begins with it, too, so that it creates no plant twice */
  firstId: z.optional(int64),
  /** the end of the last chunk that was created */
  position: z.optional(position),
})

/** Kept as JSON of an import that is not done. */
export type SavedImport = z.infer<typeof schema>

export type Position = z.infer<typeof position>

export type Counters = Position['counters']

export function beginImport(flags: SavedImport['flags']): SavedImport {
  return { version: 1, id: randomUUID(), flags, position: undefined }
}

/** Keeps the checkpoint in the store, in the transaction of its plants, or in a journal for a service. */
export class Checkpoints {
  readonly #lock: ImportLock
  readonly #store: CheckpointStore | undefined
  readonly #trusts: Io['trusts']

  /** @param store undefined if it cannot keep checkpoints */
  constructor(lock: ImportLock, store: CheckpointStore | undefined, trusts: Io['trusts']) {
    this.#lock = lock
    this.#store = store
    this.#trusts = trusts
  }

  /**
   * Finds the import that an earlier run has begun, or begins another one.
   *
   * @param flags those that determine how records are read and rejected
   * @returns `isOurs` if the earlier run had the same rejects file
   * @throws {PlantsError} `malformed` for a damaged checkpoint, and for one of an import with other flags
   */
  async open(inputs: number, flags: SavedImport['flags'], isRestart: boolean) {
    const begun = beginImport(flags)
    const text = this.#store ? await this.#store.findCheckpoint(this.#lock.name) : readJournal(this.#lock, this.#trusts)
    if (text === undefined) return { saved: begun, isOurs: false }
    const parsed = parseJson(text)
    const { data: saved } = schema.safeParse('value' in parsed ? parsed.value : undefined, { jitless: true })
    const isOurs = saved !== undefined && saved.flags['--rejects'] === flags['--rejects']
    if (isRestart) {
      await this.remove()
      return { saved: { ...begun, firstId: saved?.firstId }, isOurs }
    }
    if (!saved || (saved.position?.input ?? -1) >= inputs)
      throw malformed('The checkpoint of this import is damaged', 'Start again with --restart')
    const before = saved.flags
    const changed = [...Object.keys(flags), ...Object.keys(before)].find((name) => before[name] !== flags[name])
    if (changed === undefined) return { saved, isOurs }
    if (!saved.position && this.#store) return { saved: { ...saved, flags }, isOurs } // nothing of it is created
    const was = before[changed] === undefined ? `without ${changed}` : `with ${changed} ${before[changed]}`
    throw malformed(`This import was started ${was}`, 'Use the same flags, or start again with --restart')
  }

  /** Throws when another process imports the same meanwhile. */
  assertHeld(): void {
    this.#lock.assertHeld()
  }

  /** for the transaction of the plants */
  checkpointOf(saved: SavedImport): Checkpoint {
    this.assertHeld()
    return { id: this.#lock.name, state: JSON.stringify(saved) }
  }

  async keep(saved: SavedImport): Promise<void> {
    const checkpoint = this.checkpointOf(saved)
    if (this.#store) await this.#store.keepCheckpoint(checkpoint)
    else writeJournal(this.#lock, checkpoint.state)
  }

  async remove(): Promise<void> {
    this.assertHeld()
    if (this.#store) await this.#store.removeCheckpoint(this.#lock.name)
    else rmSync(this.#lock.journal, { force: true })
  }
}

export const noCounters: Counters = { created: 0, updated: 0, skipped: 0, rejected: {}, unknown: 0, otherFields: {} }

/** @param otherFields numbers of records by unknown field */
export function addCounts(
  before: Counters,
  outcomes: Uint8Array,
  rejected: readonly { error: number; isUnknown?: boolean }[],
  otherFields: ReadonlyMap<string, number>,
): Counters {
  const countOf = (outcome: Outcome) => outcomes.reduce((sum, one) => sum + Number(one === outcome), 0)
  const errors = { ...before.rejected }
  for (const { error, isUnknown } of rejected) if (!isUnknown) errors[error] = (errors[error] ?? 0) + 1
  const fields = new Map(Object.entries(before.otherFields))
  for (const [name, count] of otherFields) {
    const short = shorten(name)
    if (fields.has(short) || fields.size < 1000) fields.set(short, (fields.get(short) ?? 0) + count)
  }
  return {
    created: before.created + countOf(Outcome.created),
    updated: before.updated + countOf(Outcome.updated),
    skipped: before.skipped + countOf(Outcome.skipped),
    rejected: errors,
    unknown: before.unknown + countOf(Outcome.unknown),
    otherFields: Object.fromEntries(fields),
  }
}

export function rejectedIn({ rejected }: Counters): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

export function settledIn(counters: Counters): number {
  return counters.created + counters.updated + counters.skipped + counters.unknown + rejectedIn(counters)
}

export interface ImportLock extends Lock {
  /** the same for the same store and inputs on one machine */
  name: string
  /** its path */
  journal: string
}

/** Throws `unavailable` while another process imports the same inputs into the same store. */
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
    assertNotRedirected(dirname(path), io.trusts)
    return await holdLock(`${path}.lock`, { timeout: 0, clock: io, trusts: io.trusts }, (lock) => {
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

/** @throws {PlantsError} `unwritable` */
function writeJournal({ journal, directory, assertHeld }: ImportLock, text: string): void {
  let file: AtomicFile | undefined
  try {
    file = new AtomicFile(journal, directory)
    writeFileSync(file.fd, `${text}\n`)
    file.commit()
  } catch (error) {
    assertHeld()
    throw unwritable(`The journal ${journal}`, error, hint)
  } finally {
    file?.discard()
  }
}

const hint = 'Free some space, or choose another directory with the variable PLANTS_STATE_DIR'

/** Throws `malformed` for anything but a regular file of a trusted user. */
function readJournal({ journal }: ImportLock, trusts: Io['trusts']): string | undefined {
  let fd: number | undefined
  try {
    fd = openSync(journal, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // a pipe would otherwise wait for a writer
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw invalidJournal(journal, 'is not a regular file')
    if (!trusts(stats.uid)) throw invalidJournal(journal, `belongs to another user (uid ${stats.uid})`)
    return readFileSync(fd, 'utf8')
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT') return undefined
    throw code === undefined
      ? error
      : invalidJournal(journal, `could not be read: ${systemReasons[code] ?? `system error ${code}`}`, error)
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

function invalidJournal(path: string, why: string, cause?: unknown): PlantsError {
  return malformed(`The journal ${path} ${why}`, 'Start again with --restart', cause)
}
