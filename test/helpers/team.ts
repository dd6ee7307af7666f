import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { json } from './hostile.js'
import { type Result, runPlants } from './run.js'
import { temporaryFolder } from './temporary.js'

export const posts = [json(200, { name: 'Fern' })]

/** A folder with scripts, and settings in which the store `team` gets its token from a command. */
export class Team {
  readonly folder = temporaryFolder()
  readonly settings = join(this.folder, 'settings.json')
  readonly env: Record<string, string> = { PATH: process.env['PATH'] ?? '', PLANTS_CONFIG_DIR: this.folder }

  /** Makes a program, and gives its path. */
  program(name: string, text: string, mode = 0o700): string {
    const file = join(this.folder, name)
    writeFileSync(file, text, { mode })
    return file
  }

  takes(command: string, address = 'https://plants.example.com/v1'): this {
    const stores = { team: { address, 'token-command': command } }
    writeFileSync(this.settings, JSON.stringify({ version: 1, stores }), { mode: 0o600 })
    return this
  }

  /** What `auth token` makes of it, in this process. */
  async token(...flags: string[]): Promise<Result> {
    return runPlants(['auth', 'token', '--store', 'team', '--output', 'json', ...flags], { env: this.env })
  }

  /** What lies in a file of the folder, or nothing. */
  noted(name: string): string {
    return readFileSync(join(this.folder, name), { encoding: 'utf8', flag: 'a+' })
  }
}

/** A script of these lines. */
export function sh(lines: string): string {
  return `#!/bin/sh\n${lines}\n`
}

/** The result of a command that has found a token. */
export function found(fields: Record<string, unknown>): Result {
  return { code: 0, out: `${JSON.stringify(fields)}\n`, err: '' }
}

/** The result of a command whose token command has failed. */
export function failed(program: string, why: string, hint: string): Result {
  const message = `The token command of team (${program}) ${why}`
  return { code: 3, out: '', err: `${JSON.stringify({ error: 401, message, hint })}\n` }
}
