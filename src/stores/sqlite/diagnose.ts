import { formatPlantCount } from '../../plant/plant.js'
import { createDefaultHint, createNoStoreError, type SqliteAddress } from '../address.js'
import { type CheckResult, checkRights, type Finding, runCheck } from '../diagnose.js'
import type { DoctorContext } from '../store-kind.js'
import { checkIntegrity } from './backup.js'
import type { SqliteOptions } from './connection.js'
import { SqliteStore } from './store.js'
import { explainExposure } from './store-file.js'

export async function* diagnoseFile(
  address: SqliteAddress,
  context: DoctorContext,
): AsyncGenerator<Finding> {
  const store = await runCheck(context.storeCheck, () => checkFile(address, context))
  yield store
  if (store.state !== 'failed')
    yield await runCheck('contents', () => checkContents(address, context))
}

async function checkFile(address: SqliteAddress, options: SqliteOptions): Promise<CheckResult> {
  const { name, isDefault } = address
  const store = await SqliteStore.open(address, 'read', options)
  if (!store && isDefault)
    return { state: 'ok', message: `${name} (not created yet)`, hint: createDefaultHint }
  if (!store) throw createNoStoreError(address)
  const result = await checkRights(store, name)
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
