import { createHash, randomUUID } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as z from 'zod/mini'
import { parseJson } from '../../plant/json.js'
import { AtomicFile, unwritable } from '../../platform/atomic-file.js'
import { malformed, PlantsError, systemCode, systemReasons } from '../../platform/errors.js'
import { holdLock, type Lock } from '../../platform/file-lock.js'
import { assertNotRedirected, makeFolder } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'

export type Journal = ReturnType<typeof openJournal>

/** Opens the journal of an import, and reads it if it exists. Throws `malformed` for a journal of another import and for another file. */
export function openJournal(path: string, trusts: Io['trusts'], binding: Binding, lock: Lock) {
  const found = read(path, trusts)
  const all = ({ store, inputs, flags }: Binding): Record<string, string> => ({ store, inputs: inputs.join(' '), ...flags })
  const [was, is] = [all(found ?? binding), all(binding)]
  const changed = [...Object.keys(is), ...Object.keys(was)].find((name) => was[name] !== is[name])
  if (changed !== undefined) {
    const before = was[changed] === undefined ? `no ${changed}` : `${changed} ${was[changed]}`
    throw malformed(`This import was started with ${before} (${path})`, 'Use the same flags, or start again with --restart')
  }
  const saved: Saved = found ?? { type, version, ...binding, id: randomUUID() }
  const save = (position?: object) => {
    if (position) saved.position = JSON.stringify(position)
    let file: AtomicFile | undefined
    try {
      file = new AtomicFile(path, lock.directory)
      writeFileSync(file.fd, `${JSON.stringify(saved)}\n`)
      file.commit()
    } catch (error) {
      lock.assertHeld()
      throw unwritable(`The journal ${path}`, error, hint)
    } finally {
      file?.discard()
    }
  }
  return {
    path,
    id: saved.id,
    assertHeld: lock.assertHeld,
    isOld: found !== undefined,
    get position(): string | undefined {
      return saved.position
    },
    begin: () => {
      if (!found) save()
    },
    save,
    remove: () => {
      lock.assertHeld()
      rmSync(path, { force: true })
    },
  }
}

/** Removes a journal and returns its content. Unless `isDefaultPath`, a file that is not a journal is an error and is not removed. */
export function discardJournal(path: string, trusts: Io['trusts'], isDefaultPath: boolean): Saved | undefined {
  let saved: Saved | undefined
  try {
    saved = read(path, trusts, true)
  } catch (error) {
    if (!(error instanceof PlantsError) || !isDefaultPath) throw error
  }
  rmSync(path, { force: true })
  return saved
}

const hint = 'Choose another file with --journal FILE, or import without a journal: --no-journal'

const type = 'the journal of plants import'

/** of the fields below, and of those of a position in position.ts: increase it when either changes */
const version = 5

const anyVersion = z.object({ type: z.literal(type), version: z.number() })

const schema = z.object({
  type: z.literal(type),
  version: z.literal(version),
  id: z.string().check(z.regex(/^[\da-f-]{36}$/)),
  store: z.string(),
  inputs: z.array(z.string()),
  flags: z.record(z.string(), z.string()),
  /** the position of the import, if the store does not keep it */
  position: z.optional(z.string()),
})

export type Saved = z.infer<typeof schema>

/** The properties that identify an import: a resumed one must have the same. */
export type Binding = Pick<Saved, 'store' | 'inputs' | 'flags'>

export function journalPath(folder: string, { store, inputs }: Binding): string {
  const name = createHash('sha256')
    .update(JSON.stringify([store, inputs]))
    .digest('hex')
    .slice(0, 16)
  return join(folder, 'imports', `${name}.json`)
}

export async function whileAlone<T>(path: string, io: Io, action: (lock: Lock) => Promise<T>): Promise<T> {
  let hasBegun = false
  try {
    makeFolder(dirname(path))
    assertNotRedirected(dirname(path), io.trusts)
    return await holdLock(`${path}.lock`, { timeout: 0, clock: io, trusts: io.trusts }, (lock) => {
      hasBegun = true
      return action(lock)
    })
  } catch (error) {
    if (hasBegun || (error instanceof PlantsError && error.type === 'unwritable')) throw error
    if (!(error instanceof PlantsError && error.retryable)) throw unwritable(`The journal ${path}`, error, hint)
    const message = 'Another plants process is importing the same inputs into this store'
    throw new PlantsError('unavailable', message, { hint: 'Wait for it, or choose another --journal', retryable: true, cause: error })
  }
}

/** @param isDiscarded whether a journal of another version is ignored */
function read(path: string, trusts: Io['trusts'], isDiscarded = false): Saved | undefined {
  let fd: number | undefined
  try {
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // without O_NONBLOCK, a pipe would wait for a writer
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw invalidJournal(path, 'is not a regular file')
    if (!trusts(stats.uid)) throw invalidJournal(path, `belongs to another user (uid ${stats.uid})`)
    return parse(readFileSync(fd, 'utf8'), path, isDiscarded)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT') return undefined
    throw code === undefined ? error : invalidJournal(path, `could not be read: ${systemReasons[code] ?? `system error ${code}`}`, error)
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

function parse(text: string, path: string, isDiscarded: boolean): Saved | undefined {
  const parsed = parseJson(text)
  const value = 'value' in parsed ? parsed.value : undefined
  const { data } = schema.safeParse(value, { jitless: true })
  if (data) return data
  const other = anyVersion.safeParse(value, { jitless: true }).data
  if (!other || other.version === version) throw invalidJournal(path, 'is not the journal of an import')
  if (isDiscarded) return undefined
  const restart = 'Start again with --restart. What was created stays, so add --if-exists skip'
  throw malformed(`This import was started by another version of plants, whose journal this version cannot read (${path})`, restart)
}

function invalidJournal(path: string, why: string, cause?: unknown): PlantsError {
  return malformed(`The journal ${path} ${why}`, 'Choose another file with --journal, or start again with --restart', cause)
}
