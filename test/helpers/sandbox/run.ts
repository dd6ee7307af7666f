import { resolve } from 'node:path'
import { PassThrough } from 'node:stream'
import { getProxyForUrl } from 'proxy-from-env'
import { PlantsCommand } from '../../../src/cli/command.js'
import { createGlobalOptions, type GlobalOptions } from '../../../src/cli/global-options.js'
import { run } from '../../../src/cli/program/run.js'
import type { Io, Output } from '../../../src/platform/io.js'
import { checkSecrets } from '../expect/secrets.js'

export interface RunOptions {
  /** The text that is piped to stdin. Without it, stdin is /dev/null. */
  stdin?: string | Uint8Array
  env?: Record<string, string>
  cwd?: string
  terminals?: ('stdin' | 'stdout' | 'stderr')[]
  columns?: number
  signal?: AbortSignal
  now?: () => number
  /** Whether the output may show secrets, because the test looks for them itself. */
  mayShowSecrets?: boolean
}

export interface Result {
  code: number
  out: string
  err: string
}

/** Runs a command line in this process, without its environment. It fails if a token is shown. */
export async function runPlants(argv: string[], options: RunOptions = {}): Promise<Result> {
  const [out, err] = [new CapturedOutput(options, 'stdout'), new CapturedOutput(options, 'stderr')]
  const code = await run(argv, createIo(options, out, err))
  if (!options.mayShowSecrets) checkSecrets({ argv, out: out.text, err: err.text })
  return { code, out: out.text, err: err.text }
}

/** Parses the global options of a line, for tests of code below the commands. */
export function readOptions(argv: string[], io: Io): GlobalOptions {
  const command = new PlantsCommand('plants', io, { argv })
  for (const option of createGlobalOptions()) command.addOption(option)
  command.parseOptions(argv)
  return command.readOptions()
}

/** Adds to a command line those of the usual options that it lacks. */
export function addDefaults(usualOptions: Record<string, string>, argv: string[]): string[] {
  const givenFlags = new Set(argv.map((word) => word.replace(/=.*/s, '')))
  const missingOptions = Object.entries(usualOptions).filter(([flag]) => !givenFlags.has(flag))
  return [...argv, ...missingOptions.flat()]
}

/** The size of the chunks in which a program reads a pipe on Linux. */
const chunkBytes = 65_536

export function createIo(
  { stdin, env = {}, cwd = '/', terminals = [], ...options }: RunOptions,
  stdout: Output = new CapturedOutput({}, 'stdout'),
  stderr: Output = new CapturedOutput({}, 'stderr'),
): Io {
  const { signal = new AbortController().signal, now = () => performance.now() } = options
  return {
    stdin: {
      isTerminal: terminals.includes('stdin'),
      isPiped: stdin !== undefined,
      async *readChunks() {
        const bytes = Buffer.from(stdin ?? '')
        for (let start = 0; start < bytes.length; start += chunkBytes)
          yield bytes.subarray(start, start + chunkBytes)
      },
      openStream: () => new PassThrough(),
    },
    stdout,
    stderr,
    env,
    resolvePath: (path) => resolve(cwd, path.replace(/^~/, '/nonexistent/home')),
    findDataFolder: async () => '/nonexistent/data',
    findConfigFolder: async () => '/nonexistent/config',
    // An import creates this folder. If root runs the tests, it could create one in /nonexistent.
    getStopSignal: () => signal,
    getProxyForUrl: async ({ href }) => runInEnvironment(env, () => getProxyForUrl(href)),
    findUserName: () => 'gardener',
    secrets: new Set(),
    now,
    getTimeMs: Date.now,
    random: Math.random,
  }
}

export function runInEnvironment<T>(env: Record<string, string>, call: () => T): T {
  const environmentBefore = process.env
  process.env = env
  try {
    return call()
  } finally {
    process.env = environmentBefore
  }
}

export class CapturedOutput implements Output {
  text = ''
  readonly isTerminal: boolean
  readonly columns: number

  constructor({ terminals = [], columns = 80 }: RunOptions, name: 'stdout' | 'stderr') {
    this.isTerminal = terminals.includes(name)
    this.columns = columns
  }

  async write(text: string | Uint8Array): Promise<void> {
    this.text += typeof text === 'string' ? text : Buffer.from(text).toString()
  }

  log(line: string): Promise<void> {
    return this.write(line)
  }

  openStream(): NodeJS.WritableStream {
    return new PassThrough().on('data', (chunk: Buffer) => void this.write(chunk.toString()))
  }
}
