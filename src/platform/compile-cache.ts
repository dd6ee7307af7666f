import { existsSync, lstatSync, mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'

/**
 * Enables Node's compile cache in the user's cache folder (https://nodejs.org/api/module.html#module-compile-cache; Node 22.1 and
 * newer). It saves a tenth of the startup time. Node executes what is in the cache, so a folder that others can write is not used.
 */
export function useCompileCache(): void {
  const { env } = process
  const isChosen = env['NODE_COMPILE_CACHE'] || env['NODE_DISABLE_COMPILE_CACHE']
  const module: object = process.getBuiltinModule('node:module')
  if (isChosen || !('enableCompileCache' in module) || typeof module.enableCompileCache !== 'function' || 'bun' in process.versions) return
  const folder = cacheFolder(env)
  if (folder !== undefined && isOwn(folder)) module.enableCompileCache(folder)
}

/** The folder that `env-paths` returns. Loading `env-paths` would take longer than the cache saves. */
function cacheFolder(env: NodeJS.ProcessEnv): string | undefined {
  const { platform } = process
  const [base, ...rest] = {
    win32: [env['LOCALAPPDATA'], 'plants', 'Cache'],
    darwin: [env['HOME'], 'Library', 'Caches', 'plants'],
    other: env['XDG_CACHE_HOME'] ? [env['XDG_CACHE_HOME'], 'plants'] : [env['HOME'], '.cache', 'plants'],
  }[platform === 'win32' || platform === 'darwin' ? platform : 'other']
  return base && isAbsolute(base) ? join(base, ...rest.map(String)) : undefined
}

/** Whether a folder and its parent belong to this user, and only this user can access the folder. Creates missing ones, with mode 0700. */
function isOwn(folder: string): boolean {
  try {
    const around = dirname(folder)
    for (const path of [around, folder]) {
      if (existsSync(path)) continue
      if (!isOf(statSync(dirname(path)))) return false // root creates none in another user's home
      mkdirSync(path, { mode: 0o700 })
    }
    const stats = lstatSync(folder)
    return stats.isDirectory() && isOf(stats) && isOf(statSync(around)) && (process.getuid === undefined || (stats.mode & 0o077) === 0)
  } catch {
    return false // the cache is optional
  }
}

function isOf({ uid }: Stats): boolean {
  return process.getuid === undefined || uid === process.getuid()
}
