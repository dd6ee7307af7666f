// Runs the program as it is for other platforms than this one, as far as this machine can: each function makes an
// executable script.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchNode } from './nodes.mjs'
import { builtFile } from './single-file.mjs'

const root = join(import.meta.dirname, '..')
const emulator = '/usr/bin/qemu-aarch64-static'
const arm64Libraries = '/usr/aarch64-linux-gnu'
const muslLoader = '/lib/ld-musl-x86_64.so.1'

/** Debian's packages with what each platform needs, and whether they are installed. */
const tools = {
  arm64: {
    packages: 'qemu-user-static libc6-arm64-cross libstdc++6-arm64-cross',
    areHere: [emulator, join(arm64Libraries, 'lib/libstdc++.so.6')].every(existsSync),
  },
  musl: { packages: 'musl gcc', areHere: [muslLoader, '/usr/bin/gcc'].every(existsSync) },
}

/** The platforms that this machine can run, by what a script for them is made by. */
export const foreign = new Map([
  [
    'arm64',
    {
      ...tools.arm64,
      make: (folder) => emulated('arm64', folder, fetchNode('22', 'linux-arm64'), join(root, 'bin/plants.js')),
    },
  ],
  ['arm64-file', { ...tools.arm64, make: (folder) => emulated('arm64-file', folder, builtFile('linux-arm64')) }],
  ['musl', { ...tools.musl, make: onMusl }],
])

function emulated(name, folder, ...command) {
  return script(join(folder, name), `exec ${quoted([emulator, '-L', arm64Libraries, ...command])} "$@"`)
}

/**
 * Debian has no libstdc++ for musl, so the one for glibc is used, with the few functions that it does not find in musl.
 */
function onMusl(folder) {
  const libraries = join(folder, 'libraries')
  mkdirSync(libraries)
  const glibc = join(libraries, 'ld-linux-x86-64.so.2')
  execFileSync('gcc', [
    '-shared',
    '-fPIC',
    '-nostdlib',
    '-Wl,-soname,ld-linux-x86-64.so.2',
    '-o',
    glibc,
    join(root, 'test/foreign-glibc.c'),
  ])
  for (const library of ['libstdc++.so.6', 'libgcc_s.so.1'])
    symlinkSync(
      execFileSync('gcc', [`-print-file-name=${library}`], { encoding: 'utf8' }).trim(),
      join(libraries, library),
    )
  return script(
    join(folder, 'musl'),
    `LD_LIBRARY_PATH=${quoted([libraries])} exec ${quoted([builtFile('linux-x64-musl')])} "$@"`,
  )
}

function script(path, command) {
  writeFileSync(path, `#!/bin/sh\n${command}\n`, { mode: 0o755 })
  return path
}

function quoted(words) {
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
}
