import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { readSettings, type SavedSettings } from './file.js'

/** What was saved, and what is now: the very same object where nothing has changed. */
interface Change {
  before: SavedSettings
  after: SavedSettings
}

/**
 * Changes what is saved. Where that changes nothing, nothing is written, and nothing need be writable.
 *
 * @param patience milliseconds that others may take who are changing it
 * @param change gets what is saved at that moment, and gives what is to be; what it throws leaves the file as it is
 * @throws {PlantsError} `unwritable` when the file cannot be replaced, `malformed` when it is broken, `unavailable` when others took too long
 */
export async function changeSettings(
  io: Io,
  { lockTimeout }: { lockTimeout: number },
  change: (saved: SavedSettings) => SavedSettings | Promise<SavedSettings>,
): Promise<Change> {
  const outcome = async (): Promise<Change> => {
    const { saved: before } = await readSettings(io)
    const after = await change(before)
    return { before, after: isEqual(before, after) ? before : after }
  }
  const planned = await outcome()
  if (planned.after === planned.before) return planned
  const { whileLocked } = await import('./replace.js') // with conf, which is loaded only to write
  return whileLocked(io, lockTimeout, async (replace) => {
    const made = await outcome()
    if (made.after !== made.before) unlessTooDeep(() => replace(made.after))
    return made
  })
}

function isEqual(before: SavedSettings, after: SavedSettings): boolean {
  return unlessTooDeep(() => JSON.stringify(before) === JSON.stringify(after))
}

/** How deep is too deep depends on the version of Node, and on how the JSON is laid out. */
function unlessTooDeep<Result>(write: () => Result): Result {
  try {
    return write()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new PlantsError('malformed', 'The settings hold lists or objects in one another, too deep to be written again', {
      hint: 'Fix the settings file, or move it away',
      cause: error,
    })
  }
}

/**
 * @param address what it is for, and is kept under
 * @returns when it was saved
 */
export async function saveToken(address: string, token: string, lockTimeout: { lockTimeout: number }, io: Io): Promise<string> {
  const savedAt = new Date(io.time()).toISOString()
  const change = { [address]: { token, savedAt } }
  await changeSettings(io, lockTimeout, (saved) => ({ ...saved, tokens: { ...saved.tokens, ...change } }))
  return savedAt
}

/** @returns false when there was none */
export async function removeToken(address: string, lockTimeout: { lockTimeout: number }, io: Io): Promise<boolean> {
  const { before, after } = await changeSettings(io, lockTimeout, (saved) => {
    if (!Object.hasOwn(saved.tokens ?? {}, address)) return saved
    const { [address]: _, ...others } = saved.tokens ?? {}
    return { ...saved, tokens: others }
  })
  return after !== before
}
