import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { isEmptyFile } from '../../platform/files.js'
import type { AbsenceCause, SqliteAddress } from '../address.js'

/** The directory of the default store is created with the store, so it is never missing. */
export function findAbsenceCause({ name, isDefault }: SqliteAddress): AbsenceCause {
  if (isEmptyFile(name)) return 'emptyFile'
  return isDefault || existsSync(dirname(name)) ? 'missingFile' : 'missingFolder'
}
