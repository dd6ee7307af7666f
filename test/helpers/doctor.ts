import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { ownService } from './http-store.js'
import type { ProcessResult } from './process.js'
import { temporaryFolder } from './temporary.js'
import { World } from './world.js'

interface Finding {
  check: string
  state: 'ok' | 'warning' | 'failed'
  message: string
  hint?: string
}

/** A user with settings, and a plant in the store `local`. */
export class Disk extends World {
  static async build(settings: Record<string, unknown> = {}): Promise<Disk> {
    const [disk, other] = [new Disk(settings), new World()]
    await other.run('create --id 1 --name Fern')
    mkdirSync(dirname(disk.store), { mode: 0o700 })
    await other.run(`backup ${disk.store}`) // which nothing has open, and nothing closes later
    return disk
  }

  /** Runs the doctor for JSON and for text, which must say the same; nothing on the disk may change. */
  async examine(
    flags = '',
    env: Record<string, string> = {},
    run: (line: string) => Promise<Pick<ProcessResult, 'code' | 'out' | 'err'>> = (line) =>
      this.run(line, { env }),
  ) {
    const before = treeOf(this.home)
    const { code, out, err } = await run(`doctor --output ndjson${flags && ` ${flags}`}`)
    const text = await run(`doctor --output text${flags && ` ${flags}`}`)
    expect(treeOf(this.home)).toEqual(before)
    const findings = findingsOf(out)
    expect([text.code, text.out]).toEqual([code, findings.map(lineOf).join('')])
    const failures = findings.filter(({ state }) => state === 'failed').length
    expect(code).toBe(failures === 0 ? 0 : 1)
    for (const { state, hint } of findings) expect(hint === undefined).toBe(state === 'ok') // each says what to do
    const message = failures === 1 ? 'One check failed' : `${failures} checks failed`
    const said = err.split('\n').filter(Boolean)
    if (failures > 0)
      expect(JSON.parse(said.pop() ?? '')).toEqual({
        error: 500,
        message,
        hint: 'See the hints above',
      })
    expect(said).toEqual([])
    return { findings, ill: findings.filter(({ state }) => state !== 'ok') }
  }
}

/** What a doctor has printed as JSON. */
export function findingsOf(out: string): Finding[] {
  return out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

function lineOf({ check, state, message, hint }: Finding): string {
  return `${state.padEnd(7)}  ${check}: ${message}\n${hint === undefined ? '' : `         ${hint}\n`}`
}

/** Every file below a folder, with its mode and what is in it; nothing that reading alone changes. */
function treeOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .flatMap((name) => {
      const path = join(folder, name)
      const stats = lstatSync(path)
      // Whoever reads takes part in SQLite's shared memory, and makes an empty log.
      if (/-shm$/.test(name) || (/-wal$/.test(name) && stats.size === 0)) return []
      const link = stats.isSymbolicLink() ? readlinkSync(path) : ''
      const content = stats.isFile() ? `${stats.mtimeMs} ${readFileSync(path, 'base64')}` : link
      return `${name} ${(stats.mode & 0o7777).toString(8)} ${content}`
    })
}

/** The address of a service that accepts the token. */
export function accepting(): Promise<string> {
  return ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
}
