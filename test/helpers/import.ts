import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { DatabaseSync } from './database.js'
import type { RunOptions } from './run.js'
import { objectsOf, World } from './world.js'

/** What an import prints: those of its counts that are not 0, the rejected ones by their `error`. */
interface Imported {
  code: number
  err: string
  dryRun?: true
  created?: number
  updated?: number
  skipped?: number
  rejected?: Record<number, number>
}

/** A user who imports into the default store. */
export class Importer extends World {
  /** @param args without `import`; a text is split at its spaces */
  async import(
    args: string | readonly string[] = '',
    stdin?: string | Uint8Array,
    options?: RunOptions,
  ): Promise<Imported> {
    const words = typeof args === 'string' ? (args.match(/\S+/g) ?? []) : args
    const { code, out, err } = await this.run(['import', ...words], {
      ...options,
      ...(stdin !== undefined && { stdin }),
    })
    if (code === 0 || code === 6) expect(out).not.toBe('')
    if (out === '') return { code, err }
    const { rejected, reasons = {}, ...counts } = JSON.parse(out)
    expect(Object.values<number>(reasons).reduce((sum, count) => sum + count, 0)).toBe(rejected)
    const some = Object.entries(counts).filter(([, count]) => count !== 0)
    return { code, ...Object.fromEntries(some), ...(rejected > 0 && { rejected: reasons }), err }
  }

  /** The plants in the store, a line of JSON each. */
  async list(): Promise<string> {
    if (!existsSync(this.store)) return ''
    const { out, err } = await this.run('list')
    expect(err).toBe('')
    return out
  }

  /** The ids of imports into services that are not finished. */
  get journals(): string[] {
    return journalsOf(this)
  }

  rejected(rejects: string): ReturnType<typeof rejectedIn> {
    return rejectedIn(this, rejects)
  }
}

/** A line of NDJSON. */
export function plant(id: number | bigint | string, name = `Plant ${id}`, tag?: string): string {
  return `${JSON.stringify({ id: 0, name, tag }).replace('0', String(id))}\n`
}

/** A blank line, after which an import begins another chunk. */
export const nextChunk = `${' '.repeat(524_288)}\n`

const names = ['Fern', 'Подорожник', '银杏', 'زيتون', 'A "quoted" \\ one', '🌵 Saguaro']

/** Lines of NDJSON in the order of their ids, which are all over int64, just as an export writes them. */
export function plantLines(count: number): string[] {
  const step = 2n ** 64n / BigInt(count)
  return Array.from({ length: count }, (_, index) => {
    const name = `${names[index % names.length]} ${index}`
    const tag = index % 3 === 0 ? undefined : `tag ${index % 100}`
    return plant(-(2n ** 63n) + step * BigInt(index), name, tag).trimEnd()
  })
}

/** The same lines in no order; the same one each time. */
export function shuffled(lines: readonly string[]): string[] {
  const prime = 7_368_787
  return lines.map((_, index) => lines[(index * prime) % lines.length] ?? '')
}

export function writeLines(
  folder: string,
  lines: readonly string[],
  name = 'plants.ndjson',
): string {
  const path = join(folder, name)
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}

/** The summary of an import, without what is updated. */
interface Counts {
  created: number
  skipped: number
  rejected: number
  reasons?: Record<string, number> | undefined
  unknown: number
}

export function countsOf(out: string): Counts {
  const { created, skipped, rejected, reasons, unknown } = JSON.parse(out) as Counts
  return { created, skipped, rejected, reasons, unknown }
}

export function allCreated(created: number): Counts {
  return { created, skipped: 0, rejected: 0, unknown: 0 }
}

interface Rejected {
  line: number
  reason: string
  /** The members of an object, or the text of a line that is no JSON. */
  record: unknown
}

/** The records of a rejects file of NDJSON. */
export function rejectedIn(world: World, rejects: string): Rejected[] {
  return objectsOf(world.read(rejects)).map(
    ({ rejected_line, rejected_reason, rejected_text, ...record }) => ({
      line: Number(rejected_line),
      reason: String(rejected_reason),
      record: rejected_text ?? record,
    }),
  )
}

/** How many plants are in a store, past the program; none while there is no store. */
export function countOf(path: string): number {
  return Number(rowsOf(path, 'SELECT count(*) AS count FROM plants')[0]?.['count'] ?? 0)
}

export function journalsOf({ state }: World): string[] {
  const open = `SELECT id FROM imports WHERE state LIKE '{%'`
  return rowsOf(join(state, 'imports.db'), open).map(({ id }) => String(id))
}

function rowsOf(path: string, sql: string): Record<string, unknown>[] {
  if (!existsSync(path)) return []
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return db.prepare(sql).all()
  } catch {
    return [] // it is just being made
  } finally {
    db.close()
  }
}

/** For comparisons of texts that are too large to be shown. */
export function digestOf(text: string): string {
  return `${text.length} characters, ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}

/** The most memory that a process has had, in MiB; nothing when it is gone. */
export function peakOf(pid: number | undefined): number | undefined {
  const path = `/proc/${pid}/status`
  const status = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(status) ?? []
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
}
