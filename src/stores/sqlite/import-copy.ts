/**
 * Copies the contents of a store before an import changes them, so that a restore can undo it. The
 * copy has a temporary name until the first change is sent, because a person may still decline the
 * import. A process that is killed before leaves the temporary file, which a later import deletes.
 */
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ignoreSystemError } from '../../errors.js'
import { buildTemporaryPath, createFile, isAbandoned } from '../../platform/atomic-file.js'
import { isThisUser, resolveRealPath } from '../../platform/files.js'
import type { SqliteAddress } from '../address.js'
import type { ImportCopy } from '../store-kind.js'
import { backUp, nameCopy } from './backup.js'
import type { SqliteOptions } from './connection.js'
import { explainSqliteError } from './explain.js'

/** How many copies of one store are kept. */
const maxCopies = 5

/**
 * @param copyTime is a part of the name of the copy
 * @returns undefined if there are no plants
 * @throws {PlantsError} if the copy cannot be written
 */
export async function copyBeforeImport(
  address: SqliteAddress,
  copyTime: Date,
  options: SqliteOptions,
): Promise<ImportCopy | undefined> {
  const beginning = `${resolveRealPath(address.name)}.before-import`
  const temporaryFile = buildTemporaryPath(beginning)
  let file = temporaryFile
  const discard = () => rmSync(file, { force: true })
  const copy = await backUp(address, temporaryFile, options)
  if (copy?.plants === 0n) discard()
  if (!copy?.plants) return undefined
  const keep = () => {
    const path = nameCopy(`${beginning}-`, copyTime)
    try {
      createFile(temporaryFile, path)
    } catch (error) {
      throw explainSqliteError(error, path, `The backup ${path}`)
    }
    discard()
    file = path
    return path
  }
  return { keep, deleteOlder: () => deleteOldCopies(beginning), discard }
}

/**
 * Deletes the oldest copies, and the temporary ones of processes that were killed. It keeps what
 * another user has put there, and what cannot be deleted.
 */
function deleteOldCopies(beginning: string): void {
  const folder = dirname(beginning)
  const copies = (ignoreSystemError(() => readdirSync(folder)) ?? [])
    .map((name) => join(folder, name))
    .filter((path) => path.startsWith(beginning) && isOwnFile(path))
  const namedCopies = copies.filter((path) => copyEnding.test(path.slice(beginning.length)))
  const abandonedCopies = copies.filter((path) => isAbandoned(path, beginning))
  for (const copy of [...namedCopies.toSorted().slice(0, -maxCopies), ...abandonedCopies])
    ignoreSystemError(() => rmSync(copy))
}

/** Matches what `nameCopy` adds. */
const copyEnding = /^-\d{8}T\d{6}Z(?:-2)*$/

function isOwnFile(path: string): boolean {
  const stats = ignoreSystemError(() => lstatSync(path))
  return stats?.isFile() === true && isThisUser(stats.uid)
}
