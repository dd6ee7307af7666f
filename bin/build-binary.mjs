// Builds the program as one executable file for each target, with the licences and the bill of
// materials of what is in it: npm run build:binary [-- TARGET…]. Without a target, this is the one
// of this machine, and "all" stands for every target. An executable consists of the Bun of its
// target and of the bundle, which the Bun of this machine compiles.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { rolldown } from 'rolldown'
import packageLock from '../package-lock.json' with { type: 'json' }
import config from '../rolldown.config.mjs'
import { describeDriver } from './build/bundled-packages.mjs'
import { describePackage, formatSbom, sbomName } from './build/sbom.mjs'
import { findHostTarget, formatExecutableName, targets } from './build/targets.mjs'

const root = join(import.meta.dirname, '..')
const release = join(root, 'release')
const work = join(release, '.work')
const host = findHostTarget()

const compileOptions = [
  '--compile',
  '--bytecode',
  '--splitting', // Without this option, every start loads the code of all commands.
  '--format=esm',
  '--minify-syntax', // Names are kept, because the stack of an internal error shows them.
  '--minify-whitespace',
  '--external=@photostructure/sqlite',
  // A folder that the program is run in must not change what it does.
  '--no-compile-autoload-dotenv',
  '--no-compile-autoload-bunfig',
  '--no-compile-autoload-tsconfig',
  '--no-compile-autoload-package-json',
  // A start compiles less code, which saves 2 ms and 3 MB. A long run is as fast as without it.
  '--compile-jit-policy=16',
]

const names = process.argv.length > 2 ? process.argv.slice(2) : [host]
const chosenTargets = names.includes('all') ? Object.keys(targets) : names
const unknownTarget = chosenTargets.find((name) => !Object.hasOwn(targets, name))
if (unknownTarget === undefined) await build()
else {
  process.stderr.write(`There is no target ${unknownTarget}\n`)
  process.stderr.write(`The targets are ${Object.keys(targets).join(', ')}, all\n`)
  process.exitCode = 2
}

async function build() {
  rmSync(release, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })
  await bundle()
  writeNotices()
  writeSbom()
  for (const target of chosenTargets) await compile(target)
  rmSync(work, { recursive: true })
}

/** Bundles the same code as for the npm package, but as ES modules, which Bun starts sooner. */
async function bundle() {
  const build = await rolldown({ ...config, cwd: root, logLevel: 'silent' })
  await build.write({ ...config.output, dir: work, format: 'esm' })
  await build.close()
  // Stack traces show the name of this file, so it has the name of the program.
  writeFileSync(join(work, 'plants.js'), "import { start } from './main.js'\nstart()\n")
}

function writeNotices() {
  const licence = readFileSync(join(root, 'LICENSE'), 'utf8')
  const bunNotice = readFileSync(join(import.meta.dirname, 'build/bun-notice.txt'), 'utf8')
  const packages = readFileSync(join(work, 'THIRD-PARTY.txt'), 'utf8')
  const notices = [
    'plant-store\n',
    licence,
    bunNotice.replace('VERSION', findBun(host).version),
    packages,
  ]
  writeFileSync(join(release, 'LICENSES.txt'), notices.join('\n'))
}

/** Writes the bill of materials of the bundle, with Bun, which has an SQLite of its own. */
function writeSbom() {
  const driver = new Set(describeDriver().map(({ name }) => name))
  const { components: all } = JSON.parse(readFileSync(join(work, sbomName), 'utf8'))
  const components = all.filter(({ name }) => !driver.has(name))
  const bun = describePackage({ name: 'bun', version: findBun(host).version, license: 'MIT' })
  writeFileSync(join(release, sbomName), formatSbom([...components, bun]))
}

async function compile(target) {
  const hostBun = join(root, findBun(host).path)
  const targetBun = target === host ? hostBun : await fetchBun(target)
  const file = join(release, formatExecutableName(`plants-${target}`, target))
  const targetOptions = [`--target=bun-${target}`, `--compile-executable-path=${targetBun}`]
  const options = [...compileOptions, ...targetOptions, 'plants.js', '--outfile', file]
  await execa(hostBun, ['build', ...options], { cwd: work })
  process.stdout.write(`${file}\n`)
}

/**
 * Fetches the Bun of another target. npm installs it from an excerpt of package-lock.json, so that
 * npm compares the checksum. The excerpt leaves out the system of the package, because npm does not
 * install packages of other systems.
 */
async function fetchBun(target) {
  const { version, integrity, path, entry } = findBun(target)
  const folder = join(work, target)
  const manifest = { dependencies: { [targets[target]]: version } }
  const packages = { '': manifest, [entry]: { version, integrity } }
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }))
  await execa('npm', ['ci', '--ignore-scripts'], { cwd: folder })
  return join(folder, path)
}

/** Finds the Bun of a target: its entry in package-lock.json, and the path of its executable. */
function findBun(target) {
  const entry = `node_modules/${targets[target]}`
  const path = join(entry, 'bin', formatExecutableName('bun', target))
  return { ...packageLock.packages[entry], entry, path }
}
