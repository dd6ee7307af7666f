import { formatPlantCount } from '../../plant/plant.js'
import { isThisUser, isWritableFile, resolveRealPath, statIfExists } from '../../platform/files.js'
import { createNoStoreError, type SqliteAddress } from '../address.js'
import { type CheckResult, checkRights, type Finding, runCheck } from '../diagnose.js'
import type { DoctorContext } from '../store-kind.js'
import { checkIntegrity, hasLogFormat } from './backup.js'
import { explainExposure, type SqliteOptions } from './connection.js'
import { createUnusableStoreError, explainSqliteError } from './explain.js'
import { SqliteStore } from './store.js'

export async function* diagnoseFile(
  address: SqliteAddress,
  context: DoctorContext,
): AsyncGenerator<Finding> {
  const store = await runCheck(context.storeCheck, () => checkFile(address, context))
  yield store
  if (store.state !== 'failed' && !context.isQuick)
    yield await runCheck('contents', () => checkContents(address, context))
}

async function checkFile(address: SqliteAddress, options: SqliteOptions): Promise<CheckResult> {
  const { name, isDefault } = address
  const store = await SqliteStore.openExisting(address, options)
  if (!store && isDefault) return { state: 'ok', message: `${name} (not created yet)` }
  if (!store) throw createNoStoreError(address)
  const result = await checkRights({ name, serverCount: 0 }, store)
  const exposure = result.state === 'ok' ? explainExposure(name) : undefined
  return exposure === undefined ? result : { state: 'warning', message: exposure }
}

async function checkContents(
  { name }: SqliteAddress,
  options: SqliteOptions,
): Promise<CheckResult> {
  const plants = await checkIntegrity(name, options)
  const message =
    plants === undefined ? 'none yet' : `${formatPlantCount(plants)} read, and no damage found`
  return { state: 'ok', message }
}

/**
 * A service must see what others commit, such as a revoked token. If a store has a log, SQLite
 * finds the commits in the index of the log, to which readers write, too. A service that may not
 * write to the store may create this index if the owner of the store can use it, as root can.
 *
 * @throws {PlantsError} `accessDenied` for a store of which a service would see one state for ever
 */
export function assertSeesCommits({ name }: SqliteAddress): void {
  try {
    const path = resolveRealPath(name)
    const stats = statIfExists(path)
    if (!stats?.isFile() || isWritableFile(path) || !hasLogFormat(path)) return
    const ownerCanUseIndex = stats.uid === 0 || isThisUser(stats.uid)
    if (ownerCanUseIndex && isWritableFile(`${path}-shm`)) return
    throw createUnusableStoreError(
      path,
      'cannot be served: without write access to it and its directory, a service misses changes',
      'Give this user write access to the directory and the file, or serve a backup',
    )
  } catch (error) {
    throw explainSqliteError(error, name)
  }
}
