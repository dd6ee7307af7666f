import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, constants, createReadStream, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import { systemCode } from '../../src/platform/errors.js'
import { hang } from './hang.mjs'
import { bin, type ProcessResult, withoutCache } from './process.js'
import type { World } from './world.js'

export function bashOptions(user: World, env: Record<string, string> = {}) {
  return {
    ...({
      stdin: 'ignore',
      reject: false,
      stripFinalNewline: false,
      cwd: user.home,
      extendEnv: false,
    } as const),
    env: { PATH: process.env['PATH'], HOME: user.home, ...withoutCache, ...user.env, ...env },
  }
}

/** Runs a script in which "$plants" is the program. A pipe fails when any part of it does. */
export async function bash(
  user: World,
  script: string,
  env: Record<string, string> = {},
): Promise<ProcessResult> {
  const args = ['-c', `set -o pipefail; plants=$0; ${script}`, bin]
  const { exitCode, stdout, stderr } = await execa('bash', args, bashOptions(user, env))
  return { code: exitCode, out: stdout, err: stderr }
}

export function pipeIn(folder: string): string {
  const path = join(folder, `pipe-${randomUUID()}`)
  if (spawnSync('mkfifo', [path]).status !== 0) throw new Error(`There is no pipe ${path}`)
  return path
}

interface Piped {
  /** what the shell does first */
  before?: string
  /** whether the pipe is full of zeros before */
  isFull?: boolean
  env?: Record<string, string>
}

/** Runs a command line whose stdout (1) or stderr (2) is a pipe of 64 KiB that the test reads itself. */
export function intoPipe(
  user: World,
  fd: 1 | 2,
  line: string,
  { before = '', isFull = false, env }: Piped = {},
) {
  const path = pipeIn(user.home)
  const both = openSync(path, constants.O_RDWR | constants.O_NONBLOCK) // one end alone would wait for the other
  const reader = openSync(path, 'r')
  try {
    while (isFull) writeSync(both, Buffer.alloc(4096))
  } catch (error) {
    if (systemCode(error) !== 'EAGAIN') throw error
  }
  closeSync(both)
  const script = `exec ${fd}> "$1"; ${before} exec "$0" ${line}`
  const options = { ...bashOptions(user, env), timeout: hang.wait, killSignal: 'SIGKILL' } as const
  const child = execa('bash', ['-c', script, bin, path], options)
  onTestFinished(() => {
    child.kill('SIGKILL')
    closeSync(reader)
  })
  const read = (highWaterMark: number): AsyncIterable<Buffer> =>
    createReadStream('', { fd: reader, highWaterMark, autoClose: false })
  return { process: child, reader, read }
}

/** A command that makes a stream non-blocking for all who share it, as Node does, and leaves it so. */
export function unblock(stream: 'stdout' | 'stderr'): string {
  const quiet = stream === 'stdout' ? '2> /dev/null' : '> /dev/null'
  return `(node --eval "process.${stream}; process.kill(process.pid, 9)"; true) ${quiet};`
}
