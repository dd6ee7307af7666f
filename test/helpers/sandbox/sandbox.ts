import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Options } from 'execa'
import { bin, launch, type ProcessResult, waitForResult, withoutCache } from './process.js'
import { type Result, type RunOptions, runPlants } from './run.js'
import { createTemporaryFolder } from './temporary-folder.js'
import { openTerminal, type Terminal } from './terminal.js'

/** A test names what Windows lacks at its end: "needs sh", "needs modes", "needs links". */
export const isWindows = process.platform === 'win32'

/** The words of a command line, or a text that is split at its spaces. */
type CommandLine = string | readonly string[]

/** A user with a home: what is saved, stored and written there, and ways to run the program. */
export class Sandbox {
  readonly home = createTemporaryFolder()
  readonly config = join(this.home, 'config')
  readonly file = join(this.config, 'settings.json')
  readonly data = join(this.home, 'data')
  readonly store = join(this.data, 'plants.db')
  readonly env = {
    PLANTS_CONFIG_DIR: this.config,
    PLANTS_DATA_DIR: this.data,
  }

  constructor(settings?: Record<string, unknown>) {
    if (settings) this.save(settings)
  }

  /** Runs a command line in this process, without a terminal. */
  run(args: CommandLine, options: RunOptions = {}): Promise<Result> {
    const pager = options.terminals?.includes('stdout') && { PAGER: 'cat' }
    const env = { ...pager, ...this.env, ...options.env }
    return runPlants(splitWords(args), { cwd: this.home, ...options, env })
  }

  /** Starts the built program as a process, under other programs such as a tracer. */
  start(args: CommandLine, options?: Options, ...tracer: string[]): ReturnType<typeof launch> {
    return launch(this, [...tracer, bin, ...splitWords(args)], options)
  }

  /** Runs the built program to its end. The code is undefined if a signal ended it. */
  spawn(args: CommandLine, options?: Options, ...tracer: string[]): Promise<ProcessResult> {
    return waitForResult(this.start(args, options, ...tracer))
  }

  terminal(args: CommandLine, env: Record<string, string> = {}): Terminal {
    const variables = { PAGER: 'cat', ...withoutCache, ...this.env, ...env }
    return openTerminal(bin, splitWords(args), this.home, variables, { columns: 80 })
  }

  write(path: string, content: string | Uint8Array, mode = 0o600): string {
    const file = resolve(this.home, path)
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, content, { mode })
    return path
  }

  read(path: string): string {
    return readFileSync(resolve(this.home, path), 'utf8')
  }

  has(path: string): boolean {
    return existsSync(resolve(this.home, path))
  }

  /** Writes the settings file without the program. An object need not have the version. */
  save(settings: string | Uint8Array | Record<string, unknown>): void {
    const isRaw = typeof settings === 'string' || settings instanceof Uint8Array
    this.write(this.file, isRaw ? settings : JSON.stringify({ version: 1, ...settings }))
  }

  get saved(): unknown {
    return this.has(this.file) ? JSON.parse(this.read(this.file)) : undefined
  }
}

function splitWords(args: CommandLine): string[] {
  return typeof args === 'string' ? args.split(' ') : [...args]
}

export function toJsonResult(...objects: object[]): Result {
  return toTextResult(objects.map((object) => `${JSON.stringify(object)}\n`).join(''))
}

export function toTextResult(text: string): Result {
  return { code: 0, out: text, err: '' }
}

/** Parses a text that has one JSON object per line. */
export function parseObjects(text: string): Record<string, unknown>[] {
  const lines = text.split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line))
}

export function readMode(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8)
}
