import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Fetches packages into a folder of the cache, which the next `npm ci` removes. They are too large,
 * or too rarely needed, for a dependency.
 *
 * @param {string} name of the folder
 * @param {string[]} specs the packages, such as `fastify@5`
 * @param {string} file is there once they are, below `node_modules` of the folder
 * @param {{ options?: string[], compiled?: string }} more `options` of npm, and the package whose
 *   script at the installation compiles it; otherwise no script runs
 * @returns the path of the file
 * @throws {Error} with a message for people
 */
export function fetchPackages(name, specs, file, { options = [], compiled } = {}) {
  const folder = join(import.meta.dirname, '../node_modules/.cache', name)
  const path = join(folder, 'node_modules', file)
  if (existsSync(path)) return path
  mkdirSync(folder, { recursive: true })
  const manifest = { private: true, ...(compiled && { allowScripts: { [compiled]: true } }) }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const quietOptions = ['--no-save', '--no-audit', '--no-fund', '--loglevel', 'error']
  const scripts = compiled === undefined ? ['--ignore-scripts'] : []
  try {
    execFileSync(
      'npm',
      ['install', '--prefix', folder, ...quietOptions, ...scripts, ...options, ...specs],
      {
        stdio: ['ignore', 'ignore', 'inherit'],
        shell: process.platform === 'win32', // where npm is no executable
      },
    )
  } catch (cause) {
    throw new Error(
      `${specs.join(', ')} could not be fetched from the registry. Is there a network?`,
      { cause },
    )
  }
  return path
}
