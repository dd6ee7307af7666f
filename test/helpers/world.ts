import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Options } from 'execa'
import { plants, start } from './process.js'
import { type Result, type RunOptions, runPlants } from './run.js'
import { temporaryFolder } from './temporary.js'
import { type Terminal, terminal } from './terminal.js'

/** A test names what Windows lacks at its end: "needs sh", "needs modes", "needs links". */
export const isWindows = process.platform === 'win32'

/** A text is split at its spaces. */
type Words = string | readonly string[]

/** A user with a home: what is saved, stored and written there, and ways to run the program. */
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

  /** Runs a command line in this process, without a terminal. */
  run(args: Words, options: RunOptions = {}): Promise<Result> {
    const pager = options.terminals?.includes('stdout') && { PAGER: 'cat' }
    const env = { ...pager, ...this.env, ...options.env }
    return runPlants(wordsOf(args), { cwd: this.home, ...options, env })
  }

  /** Starts the built program as a process. */
  start(args: Words, { env, ...options }: Options = {}): ReturnType<typeof start> {
    const own = { cwd: this.home, ...options, env: { ...this.env, ...env } }
    return start(wordsOf(args), this.home, own)
  }

  /** Runs the built program as a process; a code of undefined stands for a signal. */
  spawn(args: Words, { env, ...options }: Options = {}): ReturnType<typeof plants> {
    const own = { cwd: this.home, ...options, env: { ...this.env, ...env } }
    return plants(wordsOf(args), this.home, own)
  }

  /** Runs the built program on a real terminal. */
  terminal(args: Words, env: Record<string, string> = {}, columns = 80): Terminal {
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

  /** Saves settings past the program: a text as it is, an object with the version it leaves out. */
  save(settings: string | Uint8Array | Record<string, unknown>): void {
    const isRaw = typeof settings === 'string' || settings instanceof Uint8Array
    const text = isRaw ? settings : JSON.stringify({ version: 1, ...settings })
    this.write('config/settings.json', text)
  }

  /** undefined if there is no file */
  get saved(): unknown {
    return existsSync(this.file) ? JSON.parse(readFileSync(this.file, 'utf8')) : undefined
  }
}

function wordsOf(args: Words): string[] {
  return typeof args === 'string' ? args.split(' ') : [...args]
}

/** The result of a command that prints objects, one per line. */
export function answer(...objects: object[]): Result {
  return printed(objects.map((object) => `${JSON.stringify(object)}\n`).join(''))
}

/** The result of a command that prints a text. */
export function printed(text: string): Result {
  return { code: 0, out: text, err: '' }
}

/** The result of a command that fails, as text. */
export function refusal(message: string, hint: string | undefined, code = 2): Result {
  return { code, out: '', err: `plants: ${message}\n${hint === undefined ? '' : `  ${hint}\n`}` }
}

/** The objects of a text that has one per line. */
export function objectsOf(text: string): Record<string, unknown>[] {
  const lines = text.split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line))
}

/** The mode of a file or directory, in octal digits. */
export function modeOf(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8)
}

/** What stderr says when the settings of a user could not be written. */
export function unwritable(user: World, why: string): string {
  const hint = 'Choose another directory with PLANTS_CONFIG_DIR'
  return `plants: The settings in ${user.file} could not be written: ${why}\n  ${hint}\n`
}
