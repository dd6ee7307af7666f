import { existsSync, lstatSync, mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'

/**
 * Lets Node keep what it has compiled of this program for the next start (Node 22.1 and newer; a tenth of a start), in the
 * user's folder for such things (https://nodejs.org/api/module.html#module-compile-cache). Without one that is the user's alone
 * nothing is kept: what is in it is run.
 */
export function useCompileCache(): void {
  const { env } = process
  const isChosen = env['NODE_COMPILE_CACHE'] || env['NODE_DISABLE_COMPILE_CACHE']
  const module: object = process.getBuiltinModule('node:module')
  if (isChosen || !('enableCompileCache' in module) || typeof module.enableCompileCache !== 'function' || 'bun' in process.versions) return
  const folder = cacheFolder(env)
  if (folder !== undefined && isOwn(folder)) module.enableCompileCache(folder)
}

/** As `env-paths` has it, which would take longer to load than is won here. */
function cacheFolder(env: NodeJS.ProcessEnv): string | undefined {
  const { platform } = process
  const [base, ...rest] = {
    win32: [env['LOCALAPPDATA'], 'plants', 'Cache'],
    darwin: [env['HOME'], 'Library', 'Caches', 'plants'],
    other: env['XDG_CACHE_HOME'] ? [env['XDG_CACHE_HOME'], 'plants'] : [env['HOME'], '.cache', 'plants'],
  }[platform === 'win32' || platform === 'darwin' ? platform : 'other']
  return base && isAbsolute(base) ? join(base, ...rest.map(String)) : undefined
}

/** Whether a folder, which is made where it is missing, is this user's alone: it, and the one around it. */
function isOwn(folder: string): boolean {
  try {
    const around = dirname(folder)
    for (const path of [around, folder]) {
      if (existsSync(path)) continue
      if (!isOf(statSync(dirname(path)))) return false // root makes none in somebody else's home
      mkdirSync(path, { mode: 0o700 })
    }
    const stats = lstatSync(folder)
    return stats.isDirectory() && isOf(stats) && isOf(statSync(around)) && (process.getuid === undefined || (stats.mode & 0o077) === 0)
  } catch {
    return false // a start does without, and says nothing
  }
}

function isOf({ uid }: Stats): boolean {
  return process.getuid === undefined || uid === process.getuid()
}
