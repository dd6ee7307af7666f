import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { Hostile, json } from './hostile.js'
import { type Result, type RunOptions, runPlants, withUsual } from './run.js'
import { temporaryFolder } from './temporary.js'

export const store = 'https://plants.example.com'
export const token = 'plants_s3cret-Token~+/='
export const when = '2026-01-02T03:04:05.678Z'

/** What a service says to an empty object when it accepts the token, and when it does not. */
export const accepts = json(400, { error: 422, message: 'id must be an integer, but is missing' })
export const refuses = json(400, { error: 401, message: 'This token is not accepted' })
export const accepting = () => Hostile.listen({ posts: [accepts] })

/** Somebody who logs in, whose settings are in a folder that is not there yet. */
export class AuthUser {
  readonly folder = join(temporaryFolder(), 'config', 'plants')
  readonly file = join(this.folder, 'settings.json')

  async auth(args: string, world: RunOptions = {}): Promise<Result> {
    return this.run(withUsual({ '--output': 'ndjson', '--store': store }, ['auth', ...args.split(' ')]), world)
  }

  async run(argv: string[], world: RunOptions = {}): Promise<Result> {
    return runPlants(argv, { ...world, env: { PLANTS_CONFIG_DIR: this.folder, ...world.env } })
  }

  async login(address: string, text: string | Uint8Array = token): Promise<Result> {
    return this.auth(`login --from-stdin --store ${address}`, { stdin: text })
  }

  write(text: string | Uint8Array): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    writeFileSync(this.file, text, { mode: 0o600 })
  }

  /** What is saved to begin with. */
  save(fields: Record<string, unknown>): void {
    this.write(JSON.stringify({ version: 1, ...fields }))
  }

  get saved(): unknown {
    return existsSync(this.file) ? JSON.parse(readFileSync(this.file, 'utf8')) : undefined
  }

  get isUntouched(): boolean {
    return !existsSync(this.folder)
  }
}

/** Objects as a command prints them, a line each. */
export function lines(...fields: Record<string, unknown>[]): string {
  return fields.map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** The result of a command that prints them. */
export function answer(...fields: Record<string, unknown>[]): Result {
  return { code: 0, out: lines(...fields), err: '' }
}

/** The result of a command that fails, as JSON. */
export function failure(code: number, error: number, message: string, hint: string): Result {
  return { code, out: '', err: lines({ error, message, hint }) }
}

/** A result, with what it says as values; the address of a service is URL in it. */
export function read({ code, out, err }: Result, url = 'no url') {
  const parse = (text: string) =>
    text.split('\n').flatMap((line): unknown[] => (line === '' ? [] : [JSON.parse(line.replaceAll(url, 'URL'))]))
  return { code, out: parse(out), err: parse(err) }
}

export const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
export const noToken = failure(
  3,
  401,
  `There is no token for ${store}`,
  `Set PLANTS_TOKEN, or save one with: plants auth login --store ${store}`,
)
export const status = (name: string, source: string, more: Record<string, unknown> = {}) => ({
  store: name,
  address: name,
  source,
  ...more,
})
