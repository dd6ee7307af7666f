import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import { bin } from './process.js'
import { createTemporaryFolder } from './temporary-folder.js'
import { waitFor } from './wait.js'

// Some tests need what only some machines have. Each constant says whether this machine has it.

export const isLinux = process.platform === 'linux'
export const canTrace = isLinux && succeeds('strace', '-o', '/dev/null', 'true')
export const canMount =
  isLinux && succeeds('unshare', '-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir())

/** A user without an account, whom root can become with setpriv. */
export const stranger = 1234
export const becomeStranger = ['--reuid', `${stranger}`, '--regid', `${stranger}`, '--clear-groups']
export const isRoot = process.getuid?.() === 0
export const canBecomeStranger =
  isLinux && isRoot && succeeds('setpriv', ...becomeStranger, 'test', '-x', bin)

function succeeds(program: string, ...args: string[]): boolean {
  return spawnSync(program, args).status === 0
}

/**
 * Mounts an empty disk of 256 KiB, which exists as long as the process that mounts it. Commands
 * that begin with `enter` find it at `folder`, and all other processes at `inside`.
 */
export async function mountSmallDisk() {
  const folder = createTemporaryFolder()
  const script = 'mount -t tmpfs -o size=256k,mode=700 tmpfs "$1" && echo mounted && exec cat'
  const args = ['-rm', 'sh', '-c', script, 'sh', folder]
  const owner = execa('unshare', args, { stdin: 'pipe', reject: false })
  onTestFinished(async () => {
    owner.stdin.end()
    await owner
  })
  await waitFor(once(owner.stdout, 'data'), () => `a tmpfs at ${folder}`)
  const enter = ['nsenter', '-t', `${owner.pid}`, '-U', '-m', '--preserve-credentials']
  return { folder, enter, inside: join(`/proc/${owner.pid}/root`, folder) }
}
