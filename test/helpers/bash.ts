import { execa } from 'execa'
import { bin, type ProcessResult, withoutCache } from './process.js'
import type { World } from './world.js'

export function bashOptions(user: World, env: Record<string, string> = {}) {
  return {
    ...({ stdin: 'ignore', reject: false, stripFinalNewline: false, cwd: user.home, extendEnv: false } as const),
    env: { PATH: process.env['PATH'], HOME: user.home, ...withoutCache, ...user.env, ...env },
  }
}

/** Runs a script in which "$plants" is the program. A pipe fails when any part of it does. */
export async function bash(user: World, script: string, env: Record<string, string> = {}): Promise<ProcessResult> {
  const args = ['-c', `set -o pipefail; plants=$0; ${script}`, bin]
  const { exitCode, stdout, stderr } = await execa('bash', args, bashOptions(user, env))
  return { code: exitCode, out: stdout, err: stderr }
}

/** A command that makes a stream non-blocking for all who share it, as Node does, and leaves it so. */
export function unblock(stream: 'stdout' | 'stderr'): string {
  const quiet = stream === 'stdout' ? '2> /dev/null' : '> /dev/null'
  return `(node --eval "process.${stream}; process.kill(process.pid, 9)"; true) ${quiet};`
}
