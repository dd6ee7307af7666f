import { join } from 'node:path'
import { execa, type Options } from 'execa'
import { checkSecretsOf } from './secrets.js'

/** The program under test: the built one, or any other that PLANTS_BIN names. */
export const bin = process.env['PLANTS_BIN'] ?? join(import.meta.dirname, '../../bin/plants.js')

export interface ProcessResult {
  code: number | undefined
  out: string
  err: string
}

/** Runs the program as a process of its own. Without `input` its stdin is /dev/null. */
export async function plants(
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
 * What Node keeps of the compiled program is left to the tests of that: the others look at all that the program writes.
 */
export const withoutCache = { NODE_DISABLE_COMPILE_CACHE: '1' }

/**
 * Starts the program with its data directory in a folder; nothing of this process's environment but PATH
 * reaches it. The test fails when it shows a token.
 */
export function start(args: string[], folder: string, options: Options = {}) {
  return launch(bin, args, folder, options)
}

/** Starts the program as `start` does, under another one, such as a tracer. */
export function startUnder(
  tracer: string,
  tracerArgs: string[],
  args: string[],
  folder: string,
  options: Options = {},
) {
  return launch(tracer, [...tracerArgs, bin, ...args], folder, options)
}

function launch(
  program: string,
  args: string[],
  folder: string,
  { env = {}, ...options }: Options,
) {
  const stdin =
    options.input === undefined && options.inputFile === undefined
      ? ({ stdin: 'ignore' } as const)
      : {}
  const child = execa(program, args, {
    ...stdin,
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
