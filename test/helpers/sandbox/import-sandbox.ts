import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { RunOptions } from './run.js'
import { parseObjects, Sandbox } from './sandbox.js'
import { queryFile } from './sqlite-file.js'

/** Those counts of an import that are not 0, the rejected ones by their `error`. */
interface Counts {
  dryRun?: true
  created?: number
  updated?: number
  skipped?: number
  unknown?: number
  rejected?: Record<number, number>
}

export function parseCounts(out: string): Counts {
  const { rejected, reasons = {}, rejects: _, ...counts } = JSON.parse(out)
  expect(Object.values<number>(reasons).reduce((sum, count) => sum + count, 0)).toBe(rejected)
  const some = Object.entries(counts).filter(([, count]) => count !== 0)
  return { ...Object.fromEntries(some), ...(rejected > 0 && { rejected: reasons }) }
}

export class ImportSandbox extends Sandbox {
  /** @param args without `import`; a text is split at its spaces */
  async import(
    args: string | readonly string[] = '',
    stdin?: string | Uint8Array,
    options?: RunOptions,
  ): Promise<Counts & { code: number; rejects?: string; err: string }> {
    const words = typeof args === 'string' ? (args.match(/\S+/g) ?? []) : args
    const { code, out, err } = await this.run(['import', ...words], {
      ...options,
      ...(stdin !== undefined && { stdin }),
    })
    if (code === 0 || code === 6) expect(out).not.toBe('')
    if (out === '') return { code, err }
    return { code, ...parseCounts(out), rejects: JSON.parse(out).rejects, err }
  }

  async list(): Promise<string> {
    if (!existsSync(this.store)) return ''
    const { out, err } = await this.run('list')
    expect(err).toBe('')
    return out
  }

  /** The imports into services that are not finished. */
  get journals(): unknown[] {
    const open = "SELECT id FROM imports WHERE state LIKE '{%'"
    return rowsOf(join(this.state, 'imports.db'), open)
  }

  /** The records of a rejects file: members of an object, or the text of a line that is no JSON. */
  rejected(rejects: string): { line: number; reason: string; record: unknown }[] {
    return parseObjects(this.read(rejects)).map(
      ({ rejected_line, rejected_reason, rejected_text, ...record }) => ({
        line: Number(rejected_line),
        reason: String(rejected_reason),
        record: rejected_text ?? record,
      }),
    )
  }
}

export function buildPlantLine(
  id: number | bigint | string,
  name = `Plant ${id}`,
  tag?: string,
): string {
  return `${JSON.stringify({ id: 0, name, tag }).replace('0', String(id))}\n`
}

/** A blank line, after which an import begins another chunk. */
export const nextChunk = `${' '.repeat(786_432)}\n`

const names = ['Fern', 'Подорожник', '银杏', 'زيتون', 'A "quoted" \\ one', '🌵 Saguaro']

/** Lines of NDJSON in the order of their ids, which are all over int64, as an export writes them. */
export function buildPlantLines(count: number): string[] {
  const step = 2n ** 64n / BigInt(count)
  return Array.from({ length: count }, (_, index) => {
    const name = `${names[index % names.length]} ${index}`
    const tag = index % 3 === 0 ? undefined : `tag ${index % 100}`
    return buildPlantLine(-(2n ** 63n) + step * BigInt(index), name, tag).trimEnd()
  })
}

/** The same lines in no order; the same one each time. */
export function shuffle(lines: readonly string[]): string[] {
  const prime = 7_368_787
  return lines.map((_, index) => lines[(index * prime) % lines.length] ?? '')
}

export function writeLines(folder: string, lines: readonly string[], name = 'plants.ndjson') {
  const path = join(folder, name)
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}

/** How many plants are in a store, past the program; none while there is no store. */
export function countPlants(path: string): number {
  return Number(rowsOf(path, 'SELECT count(*) AS count FROM plants')[0]?.['count'] ?? 0)
}

function rowsOf(path: string, sql: string): Record<string, unknown>[] {
  try {
    return existsSync(path) ? queryFile(path, sql, { readOnly: true }) : []
  } catch {
    return [] // it is just being made
  }
}

/** The most memory that a process has had, in MiB; nothing when it is gone. */
export function readPeakMemory(pid: number | undefined): number | undefined {
  const path = `/proc/${pid}/status`
  const status = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(status) ?? []
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
}
