import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, constants, createReadStream, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { execa, type Options } from 'execa'
import { onTestFinished } from 'vitest'
import { systemCode } from '../../src/platform/errors.js'
import { hang } from './hang.mjs'
import { checkSecretsOf } from './secrets.js'
import type { World } from './world.js'

/** The program under test: the built one, or any other that PLANTS_BIN names. */
export const bin = process.env['PLANTS_BIN'] ?? join(import.meta.dirname, '../../bin/plants.js')

/** Most tests look at all files that the program writes, but not at what Node keeps of its code. */
export const withoutCache = { NODE_DISABLE_COMPILE_CACHE: '1' }

export interface ProcessResult {
  code: number | undefined
  out: string
  err: string
}

/** Runs the program as a process of its own. Without `input` its stdin is /dev/null. */
export function plants(
  args: string[],
  folder: string,
  options: Options = {},
): Promise<ProcessResult> {
  return resultOf(start(args, folder, options))
}

export async function resultOf(started: ReturnType<typeof start>): Promise<ProcessResult> {
  const { exitCode, stdout, stderr } = await started
  return { code: exitCode, out: String(stdout), err: String(stderr) }
}

/**
 * Starts the program with its data directory in a folder; nothing of this process's environment but PATH
 * reaches it. The test fails when it shows a token.
 */
export function start(args: string[], folder: string, options: Options = {}) {
  return launch(bin, args, folder, options)
}

/** Starts the program as `start` does, under another one, such as a tracer. */
export function startUnder(
  program: string,
  programArgs: string[],
  args: string[],
  folder: string,
  options: Options = {},
) {
  return launch(program, [...programArgs, bin, ...args], folder, options)
}

/** Runs a command line of a user's under another program. */
export function under(
  user: World,
  program: string,
  programArgs: string[],
  line: string,
  { env, ...options }: Options = {},
): Promise<ProcessResult> {
  const args = line === '' ? [] : line.split(' ')
  const all = { cwd: user.home, ...options, env: { ...user.env, ...env } }
  return resultOf(startUnder(program, programArgs, args, user.home, all))
}

function launch(
  program: string,
  args: string[],
  folder: string,
  { env = {}, ...options }: Options,
) {
  const hasInput = options.input !== undefined || options.inputFile !== undefined
  const child = execa(program, args, {
    ...(hasInput ? {} : ({ stdin: 'ignore' } as const)),
    reject: false,
    stripFinalNewline: false,
    extendEnv: false,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      PLANTS_DATA_DIR: join(folder, 'data'),
      ...withoutCache,
      ...env,
    },
    ...options,
  })
  checkSecretsOf(child.then(({ stdout, stderr }) => ({ argv: args, out: stdout, err: stderr })))
  return child
}

/** Runs a script in which "$plants" is the program. A pipe fails when any part of it does. */
export function bash(
  user: World,
  script: string,
  env: Record<string, string> = {},
): Promise<ProcessResult> {
  const args = ['-c', `set -o pipefail; plants=$0; ${script}`, bin]
  return resultOf(launch('bash', args, user.home, { cwd: user.home, env: { ...user.env, ...env } }))
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

/** Runs a command line whose stdout (1) or stderr (2) is a pipe that the test reads itself. */
export function intoPipe(
  user: World,
  fd: 1 | 2,
  line: string,
  { before = '', isFull = false, env = {} }: Piped = {},
) {
  const path = pipeIn(user.home)
  // One end alone would wait for the other.
  const both = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const reader = openSync(path, 'r')
  try {
    while (isFull) writeSync(both, Buffer.alloc(4096))
  } catch (error) {
    if (systemCode(error) !== 'EAGAIN') throw error
  }
  closeSync(both)
  const script = `exec ${fd}> "$1"; ${before} exec "$0" ${line}`
  const child = launch('bash', ['-c', script, bin, path], user.home, {
    cwd: user.home,
    timeout: hang.wait,
    killSignal: 'SIGKILL',
    env: { ...user.env, ...env },
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
    closeSync(reader)
  })
  const read = (highWaterMark: number): AsyncIterable<Buffer> =>
    createReadStream('', { fd: reader, highWaterMark, autoClose: false })
  return { process: child, reader, read }
}

/** A command that makes stdout non-blocking for all who share it, as Node does. */
export const unblock =
  '(node --eval "process.stdout; process.kill(process.pid, 9)"; true) 2> /dev/null;'
