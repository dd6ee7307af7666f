import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Options } from 'execa'
import { plants, start } from './process.js'
import { type Result, type RunOptions, runPlants } from './run.js'
import { temporaryFolder } from './temporary.js'
import { type Terminal, terminal } from './terminal.js'

/** A user with a home of their own: what they have saved, stored and written, and ways to run the program. */
export class World {
  readonly home = temporaryFolder()
  readonly config = join(this.home, 'config')
  /** of the settings */
  readonly file = join(this.config, 'settings.json')
  readonly data = join(this.home, 'data')
  readonly store = join(this.data, 'plants.db')
  readonly state = join(this.home, 'state')
  readonly env = {
    PLANTS_CONFIG_DIR: this.config,
    PLANTS_DATA_DIR: this.data,
    PLANTS_STATE_DIR: this.state,
  }

  constructor(settings?: Record<string, unknown>) {
    if (settings) this.save(settings)
  }

  /** Runs a command line in this process, without a terminal; a text is split at its spaces. */
  run(args: string | readonly string[], options: RunOptions = {}): Promise<Result> {
    const pager = options.terminals?.includes('stdout') && { PAGER: 'cat' }
    return runPlants(wordsOf(args), {
      cwd: this.home,
      ...options,
      env: { ...pager, ...this.env, ...options.env },
    })
  }

  /** Starts the built program as a process. */
  start(
    args: string | readonly string[],
    { env, ...options }: Options = {},
  ): ReturnType<typeof start> {
    return start(wordsOf(args), this.home, {
      cwd: this.home,
      ...options,
      env: { ...this.env, ...env },
    })
  }

  /** Runs the built program as a process; a code of undefined stands for a signal. */
  spawn(
    args: string | readonly string[],
    { env, ...options }: Options = {},
  ): ReturnType<typeof plants> {
    return plants(wordsOf(args), this.home, {
      cwd: this.home,
      ...options,
      env: { ...this.env, ...env },
    })
  }

  /** Runs the built program on a real terminal. */
  terminal(
    args: string | readonly string[],
    env: Record<string, string> = {},
    columns = 80,
  ): Terminal {
    return terminal(wordsOf(args), this.home, { ...this.env, ...env }, columns)
  }

  /** Returns the path, which is relative to the home. */
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

  /** Saves settings without the program: a text as it is, an object with the version that it leaves out. */
  save(settings: string | Uint8Array | Record<string, unknown>): void {
    const isRaw = typeof settings === 'string' || settings instanceof Uint8Array
    this.write(
      'config/settings.json',
      isRaw ? settings : JSON.stringify({ version: 1, ...settings }),
    )
  }

  /** undefined if there is no file */
  get saved(): unknown {
    return existsSync(this.file) ? JSON.parse(readFileSync(this.file, 'utf8')) : undefined
  }
}

function wordsOf(args: string | readonly string[]): string[] {
  return typeof args === 'string' ? args.split(' ') : [...args]
}

/** The result of a command that prints objects, one per line. */
export function answer(...objects: object[]): Result {
  return { code: 0, out: objects.map((object) => `${JSON.stringify(object)}\n`).join(''), err: '' }
}

/** The result of a command that prints a text. */
export function printed(text: string): Result {
  return { code: 0, out: text, err: '' }
}

/** The result of a command that fails, as text. */
export function refusal(message: string, hint: string | undefined, code = 2): Result {
  return { code, out: '', err: `plants: ${message}\n${hint === undefined ? '' : `  ${hint}\n`}` }
}
