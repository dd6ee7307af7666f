import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type RunOptions, runPlants } from './run.js'
import { temporaryFolder } from './temporary.js'

/** What an import says at its end. */
export interface Imported {
  code: number
  /** without the time and the rate */
  summary: object | undefined
  err: string
}

/** Somebody who imports files of a folder of their own into a store there. */
export class Importing {
  readonly folder = temporaryFolder()
  readonly store = join(this.folder, 'plants.db')
  readonly state = join(this.folder, 'state')

  write(name: string, content: string | Uint8Array): string {
    writeFileSync(join(this.folder, name), content)
    return name
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8')
  }

  bytes(name: string): Buffer {
    return readFileSync(join(this.folder, name))
  }

  has(name: string): boolean {
    return existsSync(join(this.folder, name))
  }

  /** What is kept of imports that are not done. */
  journals(): string[] {
    const folder = join(this.state, 'imports')
    return existsSync(folder) ? readdirSync(folder) : []
  }

  run(argv: string[], world: RunOptions = {}) {
    const env = { PLANTS_STATE_DIR: this.state, PLANTS_DATA_DIR: this.folder, ...world.env }
    return runPlants(argv, { cwd: this.folder, ...world, env })
  }

  async import(argv: string[], world: RunOptions = {}): Promise<Imported> {
    const { code, out, err } = await this.run(['import', ...argv], world)
    return { code, summary: out === '' ? undefined : timeless(out), err }
  }

  /** The plants in the store, a line of JSON each. */
  async list(): Promise<string> {
    if (!existsSync(this.store)) return ''
    const { out, err } = await this.run(['list'])
    expect(err).toBe('')
    return out
  }

  /** The reasons beside a rejects file, without the last line. */
  reasons(name: string): { file: string; line: number; error: number; message: string }[] {
    const all = lines(this.read(`${name}.reasons`)).map((line) => JSON.parse(line))
    expect(Object.keys(all.at(-1))).toEqual(['sha256'])
    return all.slice(0, -1)
  }
}

/** The result of an import that rejected nothing. */
export function imported(counts: object, err = ''): Imported {
  return { code: 0, summary: summary(counts), err }
}

/** A summary with nothing in it but what is given. */
export function summary(counts: object): object {
  return { created: 0, updated: 0, skipped: 0, rejected: 0, reasons: {}, unknown: 0, ...counts }
}

/** What stderr says in text of rejected plants, and at the end. */
export function complaints(told: string[], message: string, hint?: string): string {
  const says = (text: string) => told.some((line) => line.includes(text))
  const others = `${says('in the input twice') ? repeatsHint : ''}${says('already exists') ? existsHint : ''}`
  return `${[...told, message].map((line) => `plants: ${line}\n`).join('')}  ${hint ?? others + keepHint}\n`
}

export const keepHint =
  'To keep the rejected plants in a file, run it again with: --if-exists same --rejects rejected.txt'

/** What comes first where an id is in the input twice. */
export const repeatsHint = 'Of records with the same id, keep one. '

/** What comes first where an id exists, and nothing was said of that. */
export const existsHint = 'For ids that exist, use --if-exists skip, same or update. '

/** The lines of a text, without their breaks. */
export function lines(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n')
}

/** The summary, without its times. A dry run prints what it would change before it. */
function timeless(out: string): object {
  const { seconds, rate, ...rest } = JSON.parse(out.replace(/^(\{"dryRun":true,"id":.*\n)+/, ''))
  expect([typeof seconds, typeof rate, seconds >= 0, Number.isInteger(rate)]).toEqual(['number', 'number', true, true])
  expect(out).toMatch(/[^\n]\n$/)
  return rest
}
