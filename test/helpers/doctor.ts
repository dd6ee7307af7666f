import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type ProcessResult, plants } from './process.js'
import { ownService } from './remote.js'
import { temporaryFolder } from './temporary.js'

interface Finding {
  check: string
  state: 'ok' | 'warning' | 'failed'
  message: string
  hint?: string
}

/** All that a user has on disk: settings, and the store `local` with a plant in it. */
export class Disk {
  readonly root = temporaryFolder()
  readonly config = join(this.root, 'config')
  readonly file = join(this.config, 'settings.json')
  readonly data = join(this.root, 'data')
  readonly env: Record<string, string> = { PLANTS_CONFIG_DIR: this.config }

  static async build(saved: Record<string, unknown> = {}): Promise<Disk> {
    const disk = new Disk()
    await disk.run(['create', '--id', '1', '--name', 'Fern'])
    mkdirSync(disk.config, { mode: 0o700 })
    disk.save(saved)
    return disk
  }

  save(saved: Record<string, unknown>): void {
    writeFileSync(this.file, JSON.stringify({ version: 1, ...saved }), { mode: 0o600 })
  }

  run(argv: string[]): Promise<ProcessResult> {
    return plants(argv, this.root, { env: this.env })
  }

  /** Runs the doctor for JSON and for text, which must say the same; nothing on the disk may change. */
  async examine(
    flags: string[] = [],
    run: (argv: string[]) => Promise<ProcessResult> = (argv) => this.run(argv),
  ): Promise<Diagnosis> {
    const before = treeOf(this.root)
    const { code, out, err } = await run(['doctor', '--output', 'ndjson', ...flags])
    const text = await run(['doctor', '--output', 'text', ...flags])
    expect(treeOf(this.root)).toEqual(before)
    const findings = findingsOf(out)
    const withoutSpace = (said: string) => said.replaceAll(/[\d,]+ MiB free/g, 'N MiB free')
    expect({ code: text.code, out: withoutSpace(text.out) }).toEqual({
      code,
      out: withoutSpace(findings.map(lineOf).join('')),
    })
    const failures = findings.filter(({ state }) => state === 'failed').length
    expect(code).toBe(failures === 0 ? 0 : 1)
    for (const { state, hint } of findings) expect(hint === undefined).toBe(state === 'ok') // each says what to do
    const message = failures === 1 ? 'One check failed' : `${failures} checks failed`
    const said = err.split('\n').filter(Boolean)
    if (failures > 0) expect(JSON.parse(said.pop() ?? '')).toEqual({ error: 500, message, hint: 'See the hints above' })
    return { code, findings, ill: findings.filter(({ state }) => state !== 'ok'), said }
  }
}

interface Diagnosis {
  code: number | undefined
  findings: Finding[]
  /** those that are not ok */
  ill: Finding[]
  /** what is on stderr besides the number of failures */
  said: string[]
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
    .filter((name) => !name.endsWith('.db-shm')) // shared memory, which whoever reads takes part in
    .toSorted()
    .map((name) => {
      const path = join(folder, name)
      const stats = lstatSync(path)
      const content = stats.isSymbolicLink()
        ? readlinkSync(path)
        : stats.isFile()
          ? `${stats.mtimeMs} ${digestOf(path)}`
          : 'folder'
      return `${name} ${(stats.mode & 0o7777).toString(8)} ${content}`
    })
}

function digestOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/** The address of a service that accepts the token. */
export function accepting(): Promise<string> {
  return ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
}
