import { join } from 'node:path'
import { execa, type Options } from 'execa'
import { checkSecretsAtEnd } from '../expect/secrets.js'
import { hangLimitsMs } from './hang.mjs'
import type { Sandbox } from './sandbox.js'

/** The program under test: the built one, or any other that PLANTS_BIN names. */
export const bin = process.env['PLANTS_BIN'] ?? join(import.meta.dirname, '../../../bin/plants.js')

/** Disables the code cache, so that a test that looks at all files finds only files with data. */
export const withoutCache = { NODE_DISABLE_COMPILE_CACHE: '1' }

export interface ProcessResult {
  code: number | undefined
  out: string
  err: string
}

/** Runs a command with its data in a folder. It has only PATH of this process's environment. */
export function execute(command: string[], folder: string, { env = {}, ...more }: Options = {}) {
  const [program = '', ...args] = command
  const hasInput = more.input !== undefined || more.inputFile !== undefined
  const data = { HOME: folder, PLANTS_DATA_DIR: join(folder, 'data') }
  return execa(program, args, {
    ...(hasInput ? {} : ({ stdin: 'ignore' } as const)),
    reject: false,
    stripFinalNewline: false,
    extendEnv: false,
    env: { PATH: process.env['PATH'], ...data, ...withoutCache, ...env },
    ...more,
  })
}

/** Runs a command as `execute` does, in the home of a user. A shown token fails the test. */
export function launch(user: Sandbox, command: string[], { env, ...more }: Options = {}) {
  const options = {
    cwd: user.home,
    timeout: hangLimitsMs.wait,
    ...more,
    env: { ...user.env, ...env },
  }
  const child = execute(command, user.home, options)
  checkSecretsAtEnd(child.then(({ stdout: out, stderr: err }) => ({ argv: command, out, err })))
  return child
}

/** Waits for the end of a process. One that hangs is killed, and the error shows its output. */
export async function waitForResult(child: ReturnType<typeof launch>): Promise<ProcessResult> {
  const { exitCode, stdout, stderr, command, timedOut } = await child
  if (timedOut)
    throw new Error(
      `Not within ${hangLimitsMs.wait / 1000} s: the end of ${command}\n${stdout}${stderr}`,
    )
  return { code: exitCode, out: String(stdout), err: String(stderr) }
}

/**
 * Runs a script in which `$plants` is the program. A pipeline fails if any of its commands does.
 */
export function runBash(user: Sandbox, script: string, env: Record<string, string> = {}) {
  return waitForResult(
    launch(user, ['bash', '-c', `set -o pipefail; plants=$0; ${script}`, bin], { env }),
  )
}
