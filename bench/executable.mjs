import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { findHostTarget, formatExecutableName } from '../bin/build/targets.mjs'

const root = join(import.meta.dirname, '..')

/**
 * Returns the path of the standalone executable that PLANTS_BIN names, or else of the one that was
 * built; undefined if none was.
 */
export function findExecutable() {
  if (process.env.PLANTS_BIN) return process.env.PLANTS_BIN
  const path = buildExecutablePath(findHostTarget())
  return existsSync(path) ? path : undefined
}

/**
 * Returns the path of the executable that was built for a target.
 *
 * @throws {Error} when there is none, or when it is older than `src`
 */
export function findBuiltExecutable(target) {
  const path = buildExecutablePath(target)
  const command = `npm run build:binary -- ${[...new Set([findHostTarget(), target])].join(' ')}`
  if (!existsSync(path)) throw new Error(`There is no ${path}. Make it with: ${command}`)
  if (isOlderThan(path, join(root, 'src')))
    throw new Error(`${path} is older than src. Make it again with: ${command}`)
  return path
}

function buildExecutablePath(target) {
  return join(root, 'release', formatExecutableName(`plants-${target}`, target))
}

function isOlderThan(file, folder) {
  const names = readdirSync(folder, { recursive: true })
  return names.some((name) => statSync(join(folder, name)).mtimeMs > statSync(file).mtimeMs)
}
