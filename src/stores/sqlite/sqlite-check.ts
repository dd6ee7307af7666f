import { existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { NewPlant } from '../../plant/plant.js'
import { explainedBy } from '../../platform/errors.js'
import { sharedReason } from '../../platform/files.js'
import type { FileAddress } from '../common/address.js'
import { assertRepeated } from '../common/conflict.js'
import type { CreateOptions, CreatePreview, FileOptions } from '../common/store.js'
import { findPlant } from './select.js'
import { type Connection, look } from './sqlite-connection.js'
import { explained, forbidden, isWritable, mayWrite } from './sqlite-errors.js'
import { identify, prepareToRead } from './sqlite-schema.js'
import { realPathOf, reportOwner, statIfThere } from './store-file.js'

/** Changes nothing. Throws the errors of opening the store for reading. */
export function inspect(address: FileAddress, options: FileOptions) {
  const path = realPathOf(address.name)
  return explained(path, async () => {
    if (!address.isDefault) statSync(dirname(path)) // only the default folder is created if missing
    const stats = statIfThere(path)
    const isEmpty = stats === undefined || (stats.isFile() && stats.size === 0)
    const exists = !isEmpty && (await holdsStore(path, options))
    let place = path
    while (!existsSync(place)) place = dirname(place)
    const { bavail, bsize, type } = statfsSync(place, { bigint: true })
    const folder = place === path ? dirname(path) : place
    return {
      exists,
      owner: stats?.uid,
      exposure: sharedReason(folder, (uid) => options.trusts(uid) || uid === stats?.uid),
      isWritable: place === path ? isWritable(path) : mayWrite(place),
      free: bavail * bsize,
      network: networks.get(type & 0xffffffffn),
    }
  })
}

export function holdsStore(path: string, options: FileOptions): Promise<boolean> {
  return look(path, options, (connection) => connection.retry(() => identify(connection.db, path) !== undefined))
}

/** Network file systems by their magic number (statfs(2)): they lack the shared memory that WAL mode needs. */
const networks = new Map([
  [0x6969n, 'NFS'],
  [0xfe534d42n, 'SMB'],
  [0xff534d42n, 'CIFS'],
  [0x517bn, 'SMB'],
  [0x01021997n, '9P'],
  [0x5346414fn, 'AFS'],
])

export async function dryRun(
  address: FileAddress,
  plant: NewPlant,
  create: CreateOptions,
  options: FileOptions,
): Promise<CreatePreview> {
  const path = realPathOf(address.name)
  const { exists, isWritable: isOpen } = await inspect(address, options)
  await reportOwner(address, options)
  if (!isOpen) throw explainedBy(forbidden, path, '')
  if (!exists) return { exists, creates: true }
  return explained(path, () =>
    look(path, options, async (connection) => {
      await connection.run(() => prepareToRead(connection.db, path))
      return { exists, creates: await connection.run(() => wouldCreate(connection, plant, create)) }
    }),
  )
}

/** False when the key has already created the plant. Throws `conflict` like `create`. */
function wouldCreate(connection: Connection, plant: NewPlant, { idempotencyKey }: CreateOptions): boolean {
  const first = idempotencyKey === undefined ? undefined : findPlant(connection, 'idempotency_key', idempotencyKey)
  if (!first && !findPlant(connection, 'id', plant.id)) return true
  assertRepeated(plant, first)
  return false
}
