import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { type Identity, identity, isOpenTo, ownedFolder, serverFolder } from './identity.js'
import type { Installation } from './installation.js'

/** The password of every role; it begins as all secrets of the tests do, so that one that is shown is seen. */
export const password = 's3cret-of-postgres'

/** Nothing of our own environment reaches a server. */
export const serverEnv = { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' }

/** The superuser is postgres; the role plants, which is not, owns a database of its name. */
const roles = [
  `ALTER ROLE postgres PASSWORD '${password}'`,
  `CREATE ROLE plants LOGIN PASSWORD '${password}'`,
  'CREATE DATABASE plants OWNER plants',
].map((statement) => `${statement};\n\n`) // as postgres --single -j has them

export interface Template {
  /** where servers make their folders as well */
  folder: string
  /** of a cluster that was never started */
  data: string
  /** of the executables, where the servers' user can run them */
  bin: string
}

/**
 * Makes a cluster of which each server takes a copy, which is five times as fast as initdb. Only this is not synced to
 * disk: the servers have the durability that PostgreSQL has by default.
 */
export async function makeTemplate(installation: Installation | undefined): Promise<Template> {
  if (installation === undefined) throw new Error('There is no PostgreSQL for this platform')
  const user = identity()
  const folder = serverFolder()
  const bin = installation.isPacked ? unpack(installation.bin, folder, user) : installation.bin
  const data = ownedFolder(join(folder, 'template'))
  const options = { ...user, env: serverEnv, extendEnv: false, cwd: folder }
  const flags =
    '--username=postgres --encoding=UTF8 --locale=C --auth=trust --no-sync --no-instructions'
  await execa(join(bin, 'initdb'), ['-D', data, ...flags.split(' ')], options)
  await execa(join(bin, 'postgres'), ['--single', '-j', '-F', '-D', data, 'postgres'], {
    ...options,
    input: roles.join(''),
  })
  return { folder, data, bin }
}

/**
 * Lays the package out as it would be had its install script run, without writing into node_modules, which may be
 * read-only. The executables are copied, as they look for the rest beside them; the rest only where the server's user
 * cannot read it.
 */
function unpack(bin: string, folder: string, user: Identity): string {
  const native = join(bin, '..')
  const place = isOpenTo(user, join(bin, 'postgres')) ? symlinkSync : copy
  mkdirSync(join(folder, 'lib'), { recursive: true })
  copy(bin, join(folder, 'bin'))
  place(join(native, 'share'), join(folder, 'share'))
  for (const name of readdirSync(join(native, 'lib')))
    place(join(native, 'lib', name), join(folder, 'lib', name))
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(native, 'pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links)
    symlinkSync(basename(source), join(folder, target.replace(/^native\//, '')))
  return join(folder, 'bin')
}

function copy(from: string, to: string): void {
  cpSync(from, to, { recursive: true })
}
