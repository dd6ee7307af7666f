import { createHash, randomUUID } from 'node:crypto'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as z from 'zod/mini'
import { AtomicFile, unwritable } from '../../platform/atomic-file.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import { holdLock } from '../../platform/file-lock.js'
import { makeFolder } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'

/** The record of an import that has begun and is not done, in a file of its own. */
export type Journal = ReturnType<typeof openJournal>

/** Reads the journal of an import, if there is one. Throws `malformed` for one that belongs to another import, or is none. */
export function openJournal(path: string, io: Pick<Io, 'trusts'>, binding: Binding) {
  const found = read(path, io)
  const all = ({ store, inputs, flags }: Binding): Record<string, string> => ({ store, inputs: inputs.join(' '), ...flags })
  const [was, is] = [all(found ?? binding), all(binding)]
  const changed = [...Object.keys(is), ...Object.keys(was)].find((name) => was[name] !== is[name])
  if (changed !== undefined) {
    const before = was[changed] === undefined ? `no ${changed}` : `${changed} ${was[changed]}`
    throw malformed(`This import was begun with ${before} (${path})`, 'Give the same flags as then, or begin again with --restart')
  }
  const saved: Saved = found ?? { kind, version, ...binding, id: randomUUID() }
  /** Writes the position, down to the disk, in place of the one before. */
  const save = (position?: object) => {
    if (position) saved.position = JSON.stringify(position)
    let file: AtomicFile | undefined
    try {
      file = new AtomicFile(path)
      writeFileSync(file.fd, `${JSON.stringify(saved)}\n`)
      file.commit()
    } catch (error) {
      throw unwritable(`The journal ${path}`, error, hint)
    } finally {
      file?.discard()
    }
  }
  return {
    path,
    id: saved.id,
    isOld: found !== undefined,
    get position(): string | undefined {
      return saved.position
    },
    /** Makes its file, before anything happens that it is about. */
    begin: () => {
      if (!found) save()
    },
    save,
    remove: () => rmSync(path, { force: true }),
  }
}

/** Removes a journal, and gives what it was of. In a place that is not `isUsual`, of this program alone, any other file stays. */
export function discardJournal(path: string, io: Pick<Io, 'trusts'>, isUsual: boolean): (Binding & { id: string }) | undefined {
  let saved: Saved | undefined
  try {
    saved = read(path, io, true)
  } catch (error) {
    if (!(error instanceof PlantsError) || !isUsual) throw error
  }
  rmSync(path, { force: true })
  return saved
}

const hint = 'Choose a place for it with --journal FILE, or do without: --no-journal'

const kind = 'the journal of plants import'

/** of the fields below */
const version = 4

const anyVersion = z.object({ kind: z.literal(kind), version: z.number() })

const schema = z.object({
  kind: z.literal(kind),
  version: z.literal(version),
  id: z.string().check(z.regex(/^[\da-f-]{36}$/)),
  store: z.string(),
  /** absolute paths, and "-" for stdin */
  inputs: z.array(z.string()),
  /** the flags that decide what becomes of a record */
  flags: z.record(z.string(), z.string()),
  /** where the import is, if the store keeps no positions */
  position: z.optional(z.string()),
})

type Saved = z.infer<typeof schema>

/** What an import must be like to be the same one. */
export type Binding = Pick<Saved, 'store' | 'inputs' | 'flags'>

/** The usual place for the journal of an import; one for each store and inputs. */
export function journalPath(folder: string, { store, inputs }: Binding): string {
  const name = createHash('sha256')
    .update(JSON.stringify([store, inputs]))
    .digest('hex')
    .slice(0, 16)
  return join(folder, 'imports', `${name}.json`)
}

/** Runs an action while no other process can resume with the same journal. Throws `unavailable` when one does. */
export async function whileAlone<T>(path: string, io: Io, action: () => Promise<T>): Promise<T> {
  let hasBegun = false
  try {
    makeFolder(dirname(path))
    return await holdLock(`${path}.lock`, { timeout: 0, clock: io, trusts: io.trusts, isTemporary: true }, () => {
      hasBegun = true
      return action()
    })
  } catch (error) {
    if (hasBegun) throw error
    if (!(error instanceof PlantsError && error.retryable)) throw unwritable(`The journal ${path}`, error, hint)
    const wait = 'Wait for it. To import the same once more meanwhile, give another --journal'
    throw new PlantsError('unavailable', 'Another plants is importing this into this store', { hint: wait, retryable: true, cause: error })
  }
}

/** @param isDiscarded whether one of another version does as well as none */
function read(path: string, { trusts }: Pick<Io, 'trusts'>, isDiscarded = false): Saved | undefined {
  let text: string
  try {
    const stats = statSync(path)
    if (!stats.isFile()) throw noJournal(path, 'is no file')
    if (!trusts(stats.uid)) throw noJournal(path, `belongs to another user (uid ${stats.uid})`)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw systemCode(error) === undefined ? error : noJournal(path, `could not be read: ${systemCode(error)}`, error)
  }
  try {
    const value: unknown = JSON.parse(text)
    const { data } = schema.safeParse(value, { jitless: true })
    if (data) return data
    const other = anyVersion.safeParse(value, { jitless: true }).data?.version ?? version
    if (other !== version && isDiscarded) return undefined
    if (other !== version) {
      const restart = 'Begin again with --restart. What was created stays, so add --if-exists skip'
      throw malformed(`This import was begun by another version of plants, whose journal this one cannot read (${path})`, restart)
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw noJournal(path, 'is not the journal of an import')
}

function noJournal(path: string, why: string, cause?: unknown): PlantsError {
  return malformed(`The journal ${path} ${why}`, 'Choose another file with --journal, or begin again with --restart', cause)
}
