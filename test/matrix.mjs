// Runs the tests on each runtime that the program is for, and lists at the end which passed:
// npm run test:matrix [-- --only RUNTIME,…] [-- PATTERN…]
//   --only 20.19,22,24,26,executable   some of them; "own" is the Node that runs this, "arm64" an emulated one,
//       "arm64-executable" the executable for it, and "musl" the executable for musl
//   PATTERN                      the tests of a name alone
// Without --only, these are all for which the tools are installed. Each Node is fetched from the registry when it is
// asked for; the executable is of npm run build:binary, or PLANTS_BIN. The exit code is 1 when a test failed or did
// not run.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { end, print, printColumns, temporaryFolder, track } from '../bench/common.mjs'
import { builtExecutable } from '../bench/executable.mjs'
import { fetchNode, versions } from '../bench/nodes.mjs'
import { hostTarget } from '../bin/build/targets.mjs'

const root = join(import.meta.dirname, '..')
const emulator = '/usr/bin/qemu-aarch64-static'
const arm64Libraries = '/usr/aarch64-linux-gnu'
const muslLoader = '/lib/ld-musl-x86_64.so.1'

const onArm64 = {
  packages: 'qemu-user-static libc6-arm64-cross libstdc++6-arm64-cross',
  files: [emulator, join(arm64Libraries, 'lib/libstdc++.so.6')],
}
const onMusl = { packages: 'musl gcc', files: [muslLoader, '/usr/bin/gcc'] }
const armNode = () => [fetchNode('22', 'linux-arm64'), join(root, 'bin/plants.js')]
const armProgram = () => [builtExecutable('linux-arm64')]
/** The platforms that this machine can run: Debian's packages for them, and what makes a script that runs there. */
const foreign = {
  arm64: { ...onArm64, make: () => emulated('arm64', armNode()) },
  'arm64-executable': { ...onArm64, make: () => emulated('arm64-executable', armProgram()) },
  musl: { ...onMusl, make: muslScript },
}
/** @type {Record<string, () => Runtime>} */
const runtimes = Object.fromEntries([
  ...versions.map((version) => [version, () => onNode(fetchNode(version))]),
  ['executable', onExecutable],
  ...Object.entries(foreign).map(([name, platform]) => [name, () => onForeign(name, platform)]),
  ['own', () => onNode(process.execPath)],
])

/**
 * What runs the tests, with which of them, and what it calls itself.
 *
 * @typedef {{ node: string, project: string, version: string, env?: Record<string, string>,
 *   tests?: string[], nameFilter?: string[] }} Runtime
 */

/**
 * The tests on an emulated processor, which is 10 to 20 times as slow: those of what depends on the processor and the
 * system (the SQLite driver, files, streams, signals, sockets, TLS), in files that take at most four minutes there.
 */
const emulatedTests = [
  'process/cli/code-cache',
  'process/cli/start',
  'process/commands/backup',
  'process/config/file-creation',
  'process/output/streams',
  'process/server/serve',
  'process/server/tls',
  'process/stores/sqlite-file',
  'process/export/export',
  'process/import/import.test',
  'conformance/service/contract',
]
/**
 * Not those that start the program at each system call or for each right, or fill large stores, or measure memory, to
 * which the emulator adds its own.
 */
const emulatedNames = '^(?!.*(needs strace|--allow|one moment|memory))'

const { values: flags, positionals: patterns } = readArguments()
const names = flags.only.split(',')
const unknown = names.filter((name) => !Object.hasOwn(runtimes, name))
if (unknown.length > 0)
  end(2, `--only must be some of ${Object.keys(runtimes).join()}, but has ${unknown.join()}`)

const folder = temporaryFolder()
const results = []
for (const name of names) {
  print(`# ${name}`)
  results.push([name, ...(await judge(name))])
}
printColumns([['', 'version', 'result', 'seconds'], ...results])
process.exitCode = results.every(([, , result]) => result === 'passed') ? 0 : 1

function readArguments() {
  const always = [...versions, 'executable']
  const others = Object.entries(foreign).filter(([, { files }]) => files.every(existsSync))
  const names = [...always, ...others.map(([name]) => name)]
  try {
    return parseArgs({
      options: { only: { type: 'string', default: names.join() } },
      allowPositionals: true,
    })
  } catch (error) {
    return end(2, `npm run test:matrix -- [--only ${always}] [PATTERN…]: ${error.message}`)
  }
}

function onNode(node) {
  return {
    node,
    project: 'suite',
    version: `Node ${execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()}`,
  }
}

function onExecutable() {
  return onProgram(process.env.PLANTS_BIN || builtExecutable(hostTarget()))
}

function onForeign(name, { packages, files, make }) {
  if (!files.every(existsSync))
    throw new Error(`It needs packages of Debian. Install them with: apt-get install ${packages}`)
  const runtime = onProgram(make())
  if (name === 'musl') return runtime
  return { ...runtime, tests: emulatedTests, nameFilter: ['--testNamePattern', emulatedNames] }
}

function emulated(name, command) {
  const words = quoted([emulator, '-L', arm64Libraries, ...command])
  return script(join(folder, name), `exec ${words} "$@"`)
}

/**
 * Debian has no libstdc++ for musl, so the one for glibc is used, with the few functions that it does not find in musl.
 */
function muslScript() {
  const libraries = join(folder, 'libraries')
  mkdirSync(libraries)
  const glibc = join(libraries, 'ld-linux-x86-64.so.2')
  const shared = '-shared -fPIC -nostdlib -Wl,-soname,ld-linux-x86-64.so.2'.split(' ')
  execFileSync('gcc', [...shared, '-o', glibc, join(root, 'test/foreign-glibc.c')])
  for (const library of ['libstdc++.so.6', 'libgcc_s.so.1']) {
    const path = execFileSync('gcc', [`-print-file-name=${library}`], { encoding: 'utf8' })
    symlinkSync(path.trim(), join(libraries, library))
  }
  const program = quoted([builtExecutable('linux-x64-musl')])
  const command = `LD_LIBRARY_PATH=${quoted([libraries])} exec ${program} "$@"`
  return script(join(folder, 'musl'), command)
}

function script(path, command) {
  writeFileSync(path, `#!/bin/sh\n${command}\n`, { mode: 0o755 })
  return path
}

function quoted(words) {
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
}

/** Only the tests that start the program say anything about it. */
function onProgram(file) {
  const args = ['doctor', '--quick', '--output', 'ndjson']
  const [runtime] = spawnSync(file, args, { encoding: 'utf8' }).stdout.split('\n')
  return {
    node: process.execPath,
    project: 'black-box',
    version: JSON.parse(runtime).message,
    env: { PLANTS_BIN: file },
  }
}

/** The version of a runtime, how the tests went on it, and how long they took. */
async function judge(name) {
  const start = performance.now()
  try {
    const runtime = runtimes[name]()
    const result = (await runTests(runtime)) === 0 ? 'passed' : 'failed'
    return [runtime.version, result, ((performance.now() - start) / 1000).toFixed(0)]
  } catch (error) {
    return [error.message, 'did not run', '']
  }
}

/**
 * Returns the exit code of vitest.
 *
 * @param {Runtime} runtime
 */
async function runTests({ node, project, env, tests = [], nameFilter = [] }) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const args = ['run', '--config', join(root, 'test/vitest.config.mts'), '--project', project]
  // First in PATH, because the program begins with "#!/usr/bin/env node".
  const path = `${dirname(node)}${delimiter}${process.env.PATH}`
  const all = { ...process.env, PLANTS_BIN: undefined, ...env, PATH: path }
  const chosen = patterns.length > 0 ? patterns : tests
  const words = [vitest, ...args, ...nameFilter, ...chosen]
  const child = spawn(node, words, { cwd: root, env: all, stdio: ['ignore', 'inherit', 'inherit'] })
  track(child)
  const [code] = await once(child, 'close')
  return code
}
