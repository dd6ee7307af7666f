import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa, type Options } from 'execa'
import { expect, onTestFinished } from 'vitest'
import { bin, startUnder } from './process.js'
import { temporaryFolder } from './temporary.js'
import type { World } from './world.js'

// What only some machines let a test do: tests that need it say so in their names.

export const isLinux = process.platform === 'linux'
export const canTrace = isLinux && succeeds('strace', '-o', '/dev/null', 'true')
export const canMount =
  isLinux && succeeds('unshare', '-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir())

/** A user without an account, whom root can become. */
export const stranger = 1234
export const becomeStranger = ['--reuid', `${stranger}`, '--regid', `${stranger}`, '--clear-groups']
const isRoot = process.getuid?.() === 0
export const canBecome =
  isLinux && isRoot && succeeds('setpriv', ...becomeStranger, 'test', '-x', bin)
export const canDropRights =
  process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))

function succeeds(program: string, ...args: string[]): boolean {
  return spawnSync(program, args).status === 0
}

/** Starts a command line of a user's without the rights of root, who may write anywhere. */
export function startWithoutRights(user: World, line: string, options: Options = {}) {
  if (!isRoot) return user.start(line, options)
  const bare = ['--bounding-set', '-all', '--inh-caps', '-all']
  return startUnder('setpriv', bare, line.split(' '), user.home, { env: user.env, ...options })
}

/** Whether a program is on this machine. */
export function isHere(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, program)))
}

/** Runs a program, which must end with 0, and gives what it prints. */
export function run(
  program: string,
  args: string[],
  env: Record<string, string | undefined> = {},
): string {
  const options = { encoding: 'utf8', env: { ...process.env, ...env } } as const
  const { status, stdout, stderr } = spawnSync(program, args, options)
  expect(status, stdout + stderr).toBe(0)
  return stdout + stderr
}

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
  const args = ['-rm', 'sh', '-c', script, 'sh', folder]
  const owner = execa('unshare', args, { stdin: 'pipe', reject: false })
  onTestFinished(async () => {
    owner.stdin.end()
    await owner
  })
  await once(owner.stdout, 'data')
  return { folder, owner: owner.pid, inside: join(`/proc/${owner.pid}/root`, folder) }
}
