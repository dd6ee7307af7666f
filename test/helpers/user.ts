import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Result, runPlants, type World } from './run.js'
import { temporaryFolder } from './temporary.js'

/** A user whose settings are in a folder that is not there yet, and who is in a folder of their own. */
export class User {
  readonly home = temporaryFolder()
  readonly folder = join(this.home, 'config')
  readonly file = join(this.folder, 'settings.json')
  readonly env = { PLANTS_CONFIG_DIR: this.folder, PLANTS_DATA_DIR: join(this.home, 'data') }

  /** Runs a command line in this process; a text is cut at its spaces. */
  async run(args: string | string[], world: World = {}): Promise<Result> {
    const argv = typeof args === 'string' ? args.split(' ') : args
    return runPlants(argv, { cwd: this.home, ...world, env: { ...this.env, ...world.env } })
  }

  /**
   * Saves settings past the program: bytes as they are, anything else as JSON, with the version where there is none.
   */
  write(settings: string | Uint8Array | Record<string, unknown>): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    const isRaw = typeof settings === 'string' || settings instanceof Uint8Array
    writeFileSync(this.file, isRaw ? settings : JSON.stringify({ version: 1, ...settings }), { mode: 0o600 })
  }

  /** What the file holds; undefined when there is none. */
  get saved(): unknown {
    return existsSync(this.file) ? JSON.parse(readFileSync(this.file, 'utf8')) : undefined
  }
}

/** The result of a command that prints an object a line. */
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
