import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { BuildError } from './build-error.mjs'
import { executableName, targets } from './targets.mjs'

const root = join(import.meta.dirname, '../..')
const cache = join(root, 'node_modules/.cache/bun')
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages

/** The version of the Bun that compiles, and of the one that is in what it compiles. */
export const bunVersion = lock['node_modules/bun'].version

/** The Bun that was installed for this machine. */
export function installedBun(target) {
  const path = join(root, 'node_modules', targets[target], 'bin', executableName('bun', target))
  if (!existsSync(path))
    throw new BuildError(`There is no Bun in ${path}`, 'Install it with: npm ci')
  return path
}

/** The Bun of another machine: fetched from the registry once, and checked against package-lock.json. */
export function fetchedBun(target) {
  const path = join(cache, `${target}-${bunVersion}`, 'package/bin', executableName('bun', target))
  if (!existsSync(path)) fetchPackage(target)
  return path
}

function fetchPackage(target) {
  const name = targets[target]
  const folder = join(cache, `${target}-${bunVersion}`)
  const unpacked = `${folder}.part` // so that a fetch that is stopped leaves nothing that looks whole
  rmSync(unpacked, { recursive: true, force: true })
  mkdirSync(unpacked, { recursive: true })
  const args = [
    'pack',
    `${name}@${bunVersion}`,
    '--json',
    '--silent',
    '--ignore-scripts',
    '--pack-destination',
    unpacked,
  ]
  const { status, stdout } = spawnSync('npm', args, {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  })
  if (status !== 0)
    throw new BuildError(
      `Could not fetch ${name} ${bunVersion} from the package registry`,
      'Is the network there? Try: npm ping',
    )
  const archive = join(unpacked, packedFile(stdout))
  checkIntegrity(archive, name)
  if (spawnSync('tar', ['-xzf', archive, '-C', unpacked]).status !== 0)
    throw new BuildError(
      `Could not unpack ${archive}`,
      'It needs the program tar, and 150 MB of disk',
    )
  rmSync(archive)
  rmSync(folder, { recursive: true, force: true })
  renameSync(unpacked, folder)
}

/** npm 12 tells it by the package's name, older ones in a list. */
function packedFile(json) {
  const [{ filename }] = Object.values(JSON.parse(json))
  return filename
}

function checkIntegrity(archive, name) {
  const integrity = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
  if (integrity === lock[`node_modules/${name}`].integrity) return
  throw new BuildError(
    `What came as ${name} ${bunVersion} is not what package-lock.json names`,
    'Fetch it from another registry, or from the network itself',
  )
}
