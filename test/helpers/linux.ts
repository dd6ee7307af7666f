import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from './temporary.js'

/** What only Linux lets a test do, and only where its tools are installed: tests that need it say so in their names. */
export const isLinux = process.platform === 'linux'
export const canTrace = isLinux && spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0
export const canMount =
  isLinux && spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0

export interface SmallDisk {
  /** where it is for the processes that share its mounts */
  folder: string
  /** the process that these belong to */
  owner: number | undefined
  /** where it is for all others */
  inside: string
}

/** An empty disk of 256 KiB, which goes with the process that has mounted it. */
export async function smallDisk(): Promise<SmallDisk> {
  const folder = temporaryFolder()
  const script = 'mount -t tmpfs -o size=256k,mode=700 tmpfs "$1" && echo mounted && exec cat'
  const owner = execa('unshare', ['-rm', 'sh', '-c', script, 'sh', folder], {
    stdin: 'pipe',
    reject: false,
  })
  onTestFinished(async () => {
    owner.stdin.end()
    await owner
  })
  await once(owner.stdout, 'data')
  return { folder, owner: owner.pid, inside: join(`/proc/${owner.pid}/root`, folder) }
}
