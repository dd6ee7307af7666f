// Runs the tests on each runtime that the program is for, and lists at the end which passed:
// npm run test:matrix [-- --only RUNTIME,…] [-- PATTERN…]
//   --only 20.19,22,24,26,executable   some of the runtimes: "own" is the Node that runs this,
//       "arm64" an emulated one, "arm64-executable" the executable for it, "musl" that for musl
//   PATTERN                            only the test files with this in their names
// Without --only, these are all for which the tools are installed. Each Node comes from the
// registry when it is needed. The executable is that of npm run build:binary, or PLANTS_BIN. The
// exit code is 1 if a test failed or did not run.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { createTemporaryFolder, end, print, printColumns, track } from '../bench/common.mjs'
import { findBuiltExecutable } from '../bench/executable.mjs'
import { fetchNode, versions } from '../bench/nodes.mjs'
import { findHostTarget } from '../bin/build/targets.mjs'

const root = join(import.meta.dirname, '..')
const emulator = '/usr/bin/qemu-aarch64-static'
const arm64Libraries = '/usr/aarch64-linux-gnu'
const muslLoader = '/lib/ld-musl-x86_64.so.1'

const onArm64 = {
  packages: 'qemu-user-static libc6-arm64-cross libstdc++6-arm64-cross',
  files: [emulator, join(arm64Libraries, 'lib/libstdc++.so.6')],
}
const onMusl = { packages: 'musl gcc', files: [muslLoader, '/usr/bin/gcc'] }

/**
 * The platforms that this machine can run, with the packages of Debian that they need, and what
 * writes a script that runs there.
 */
const foreignPlatforms = {
  arm64: {
    ...onArm64,
    writeScript: () =>
      writeEmulation('arm64', [fetchNode('22', 'linux-arm64'), join(root, 'bin/plants.js')]),
  },
  'arm64-executable': {
    ...onArm64,
    writeScript: () => writeEmulation('arm64-executable', [findBuiltExecutable('linux-arm64')]),
  },
  musl: { ...onMusl, writeScript: writeMuslScript },
}

/** @type {Record<string, () => Runtime>} */
const runtimes = Object.fromEntries([
  ...versions.map((version) => [version, () => describeNode(fetchNode(version))]),
  ['executable', describeExecutable],
  ...Object.entries(foreignPlatforms).map(([name, platform]) => [
    name,
    () => describeForeign(name, platform),
  ]),
  ['own', () => describeNode(process.execPath)],
])

/**
 * A runtime is what runs the tests, with which of them, and what it calls itself.
 *
 * @typedef {{ node: string, project: string, version: string, env?: Record<string, string>,
 *   tests?: string[], nameFilter?: string[] }} Runtime
 */

/**
 * An emulated processor is 10 to 20 times as slow. These tests run there: those of what depends on
 * the processor and the system (the SQLite driver, files, streams, signals, sockets, TLS), in files
 * that take at most four minutes.
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
  'conformance/service/rights',
]
/**
 * Tests do not run there that start the program at each system call or for each right, that fill
 * large stores, or that measure memory, to which the emulator adds its own.
 */
const emulatedNames = '^(?!.*(needs strace|--allow|one snapshot|memory))'

const { values: flags, positionals: patterns } = readArguments()
const names = flags.only.split(',')
const unknown = names.filter((name) => !Object.hasOwn(runtimes, name))
if (unknown.length > 0)
  end(2, `--only must be some of ${Object.keys(runtimes).join()}, but has ${unknown.join()}`)

const folder = createTemporaryFolder()
const results = []
for (const name of names) {
  print(`# ${name}`)
  results.push([name, ...(await testRuntime(name))])
}
printColumns([['', 'version', 'result', 'seconds'], ...results])
process.exitCode = results.every(([, , result]) => result === 'passed') ? 0 : 1

function readArguments() {
  const native = [...versions, 'executable']
  const foreign = Object.entries(foreignPlatforms)
    .filter(([, { files }]) => files.every(existsSync))
    .map(([name]) => name)
  try {
    return parseArgs({
      options: { only: { type: 'string', default: [...native, ...foreign].join() } },
      allowPositionals: true,
    })
  } catch (error) {
    return end(2, `npm run test:matrix -- [--only ${native}] [PATTERN…]: ${error.message}`)
  }
}

function describeNode(node) {
  const args = ['-p', 'process.versions.node']
  const version = execFileSync(node, args, { encoding: 'utf8' }).trim()
  return { node, project: 'suite', version: `Node ${version}` }
}

function describeExecutable() {
  return describeProgram(process.env.PLANTS_BIN || findBuiltExecutable(findHostTarget()))
}

function describeForeign(name, { packages, files, writeScript }) {
  if (!files.every(existsSync))
    throw new Error(`It needs packages of Debian. Install them with: apt-get install ${packages}`)
  const runtime = describeProgram(writeScript())
  if (name === 'musl') return runtime
  return { ...runtime, tests: emulatedTests, nameFilter: ['--testNamePattern', emulatedNames] }
}

function writeEmulation(name, command) {
  const words = quote([emulator, '-L', arm64Libraries, ...command])
  return writeShellScript(join(folder, name), `exec ${words} "$@"`)
}

/**
 * Debian has no libstdc++ for musl, so the one for glibc is used, with the few functions that it
 * does not find in musl.
 */
function writeMuslScript() {
  const libraries = join(folder, 'libraries')
  mkdirSync(libraries)
  const glibc = join(libraries, 'ld-linux-x86-64.so.2')
  const shared = '-shared -fPIC -nostdlib -Wl,-soname,ld-linux-x86-64.so.2'.split(' ')
  execFileSync('gcc', [...shared, '-o', glibc, join(root, 'test/foreign-glibc.c')])
  for (const library of ['libstdc++.so.6', 'libgcc_s.so.1']) {
    const path = execFileSync('gcc', [`-print-file-name=${library}`], { encoding: 'utf8' })
    symlinkSync(path.trim(), join(libraries, library))
  }
  const program = quote([findBuiltExecutable('linux-x64-musl')])
  const command = `LD_LIBRARY_PATH=${quote([libraries])} exec ${program} "$@"`
  return writeShellScript(join(folder, 'musl'), command)
}

function writeShellScript(path, command) {
  writeFileSync(path, `#!/bin/sh\n${command}\n`, { mode: 0o755 })
  return path
}

function quote(words) {
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
}

/** Only the tests that start the program say anything about an executable. */
function describeProgram(file) {
  const args = ['doctor', '--output', 'ndjson']
  const [runtime] = spawnSync(file, args, { encoding: 'utf8' }).stdout.split('\n')
  return {
    node: process.execPath,
    project: 'black-box',
    version: JSON.parse(runtime).message,
    env: { PLANTS_BIN: file },
  }
}

/** Runs the tests on a runtime: its version, how they went, and how many seconds they took. */
async function testRuntime(name) {
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
 * @param {Runtime} runtime
 * @returns the exit code of vitest
 */
async function runTests({ node, project, env, tests = [], nameFilter = [] }) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const args = ['run', '--config', join(root, 'test/vitest.config.mts'), '--project', project]
  // This Node is the first in PATH, because the program begins with "#!/usr/bin/env node".
  const PATH = `${dirname(node)}${delimiter}${process.env.PATH}`
  const files = patterns.length > 0 ? patterns : tests
  const child = spawn(node, [vitest, ...args, ...nameFilter, ...files], {
    cwd: root,
    env: { ...process.env, PLANTS_BIN: undefined, ...env, PATH },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  track(child)
  const [code] = await once(child, 'close')
  return code
}
