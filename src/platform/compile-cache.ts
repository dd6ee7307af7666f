import { existsSync, lstatSync, mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'

/**
 * Enables Node's compile cache (https://nodejs.org/api/module.html#module-compile-cache; Node 22.1 and newer). Node
 * executes what is in it, so a folder that others can write is not used.
 */
export function useCompileCache(): void {
  const { env } = process
  if (env['NODE_COMPILE_CACHE'] || env['NODE_DISABLE_COMPILE_CACHE'] || 'bun' in process.versions) return
  const module: object = process.getBuiltinModule('node:module')
  if (!('enableCompileCache' in module) || typeof module.enableCompileCache !== 'function') return
  // Loading env-paths would take longer than the cache saves.
  const base = env['XDG_CACHE_HOME'] || env['LOCALAPPDATA'] || (env['HOME'] && join(env['HOME'], '.cache'))
  const folder = join(base ?? '', 'plants')
  if (isAbsolute(folder) && isOwn(folder)) module.enableCompileCache(folder)
}

/** Creates what is missing. No other user may access the folder, or own its parent. */
function isOwn(folder: string): boolean {
  try {
    const parent = dirname(folder)
    // Root creates none in another user's home.
    for (const path of [parent, folder])
      if (!existsSync(path) && isOf(statSync(dirname(path)))) mkdirSync(path, { mode: 0o700 })
    const stats = lstatSync(folder)
    const isPrivate = process.getuid === undefined || (stats.mode & 0o077) === 0
    return isPrivate && stats.isDirectory() && isOf(stats) && isOf(statSync(parent))
  } catch {
    return false // the cache is optional
  }
}

function isOf({ uid }: Stats): boolean {
  return process.getuid === undefined || uid === process.getuid()
}
