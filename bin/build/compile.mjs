import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import config from '../../rolldown.config.mjs'
import { BuildError } from './build-error.mjs'
import { installedBun } from './bun.mjs'
import { bundledPackages } from './bundled-packages.mjs'

const root = join(import.meta.dirname, '../..')

/**
 * Bundles the program as the npm package does, but as ES modules, of which Bun starts sooner. Gives the packages in it.
 */
export async function bundle(folder) {
  const plugins = config.plugins.filter(({ name }) => name !== 'third-party-notices')
  const build = await rolldown({ ...config, cwd: root, plugins, logLevel: 'silent' })
  const { output } = await build.write({ ...config.output, dir: folder, format: 'esm' })
  await build.close()
  writeFileSync(join(folder, entry), "import { start } from './main.js'\nstart()\n")
  return bundledPackages(output)
}

const entry = 'plants.js' // which stack traces show

/** Compiles a bundle into one file for a target, around the Bun of that target. */
export function compile(folder, outfile, { host, target, bun = installedBun(host) }) {
  const args = [
    'build',
    ...settings,
    `--target=bun-${target}`,
    `--compile-executable-path=${bun}`,
    join(folder, entry),
    join(folder, 'workbook-worker.js'),
    '--outfile',
    outfile,
  ]
  const { status, error, stderr } = spawnSync(installedBun(host), args, {
    cwd: folder,
    encoding: 'utf8',
  })
  if (status !== 0 || !existsSync(outfile))
    throw new BuildError(`Bun could not build ${outfile}`, error?.message ?? stderr.trim())
}

const settings = [
  '--compile',
  '--bytecode',
  '--splitting', // without it every start loads all there is
  '--format=esm',
  '--minify-syntax', // but not the names of functions, which the stack of a defect shows
  '--minify-whitespace',
  '--external=@photostructure/sqlite',
  // A folder that the program is run in must not change what it does.
  '--no-compile-autoload-dotenv',
  '--no-compile-autoload-bunfig',
  '--no-compile-autoload-tsconfig',
  '--no-compile-autoload-package-json',
  '--compile-jit-policy=16', // a start compiles less, and a long run is as fast: 2 ms and 3 MB
]
