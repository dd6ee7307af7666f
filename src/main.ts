import { existsSync, lstatSync, mkdirSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'

export async function start(): Promise<void> {
  useCompileCache()
  const [{ processIo }, { run }] = await Promise.all([import('./platform/io.js'), import('./cli/program/run.js')])
  const { argv, io, end } = processIo()
  end(await run(argv, io))
}

/**
 * Enables Node's compile cache (https://nodejs.org/api/module.html#module-compile-cache; Node 22.1 and newer). Node
 * executes what is in it, so a folder that others can write is not used.
 */
function useCompileCache(): void {
  const { env } = process
  if (env['NODE_COMPILE_CACHE'] || env['NODE_DISABLE_COMPILE_CACHE'] || 'bun' in process.versions) return
  const module: object = process.getBuiltinModule('node:module')
  if (!('enableCompileCache' in module) || typeof module.enableCompileCache !== 'function') return
  // Loading env-paths would take longer than the cache saves.
  const base = env['XDG_CACHE_HOME'] || env['LOCALAPPDATA'] || (env['HOME'] && join(env['HOME'], '.cache'))
  const folder = join(base ?? '', 'plants')
  if (isAbsolute(folder) && isSafe(folder)) module.enableCompileCache(folder)
}

/** Creates what is missing. Without trust.ts: what is loaded before the cache is enabled is not cached. */
function isSafe(folder: string): boolean {
  try {
    for (const path of [dirname(folder), folder]) if (!existsSync(path)) mkdirSync(path, { mode: 0o700 })
    const stats = lstatSync(folder)
    const isPrivate = process.getuid === undefined || (stats.uid === process.getuid() && (stats.mode & 0o022) === 0)
    return isPrivate && stats.isDirectory()
  } catch {
    return false // the cache is optional
  }
}
