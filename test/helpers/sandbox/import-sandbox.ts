import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { RunOptions } from './run.js'
import { parseObjects, Sandbox } from './sandbox.js'
import { queryFile } from './sqlite-file.js'

/** The counts of an import that are not 0. Rejected records are counted by their `error`. */
interface Counts {
  dryRun?: true
  created?: number
  updated?: number
  skipped?: number
  unknown?: number
  deleted?: number
  missing?: number
  rejected?: Record<number, number>
}

/** Parses the summary of an import, which a dry run prints below its changes. */
function parseSummary(out: string) {
  return JSON.parse(out.trimEnd().split('\n').at(-1) ?? '')
}

export function parseCounts(out: string): Counts {
  const { rejected, reasons = {}, rejects: _, ...counts } = parseSummary(out)
  expect(Object.values<number>(reasons).reduce((sum, count) => sum + count, 0)).toBe(rejected)
  const positiveCounts = Object.entries(counts).filter(([, count]) => count !== 0)
  return { ...Object.fromEntries(positiveCounts), ...(rejected > 0 && { rejected: reasons }) }
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
    return { code, ...parseCounts(out), rejects: parseSummary(out).rejects, err }
  }

  async list(): Promise<string> {
    if (!existsSync(this.store)) return ''
    const { out, err } = await this.run('list')
    expect(err).toBe('')
    return out
  }

  /** Reads a rejects file. A record is an object, or the text of a line that is not JSON. */
  readRejected(rejects: string): { line: number; reason: string; record: unknown }[] {
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

/** Pads a line so that an import begins another chunk after it. */
export function fillChunk(line: string): string {
  return `${line.trimEnd()}${' '.repeat(786_432)}\n`
}

const names = ['Fern', 'Подорожник', '银杏', 'زيتون', 'A "quoted" \\ one', '🌵 Saguaro']

/** Builds lines of NDJSON as an export writes them, with ids from the whole range of int64. */
export function buildPlantLines(count: number): string[] {
  const step = 2n ** 64n / BigInt(count)
  return Array.from({ length: count }, (_, index) => {
    const name = `${names[index % names.length]} ${index}`
    const tag = index % 3 === 0 ? undefined : `tag ${index % 100}`
    return buildPlantLine(-(2n ** 63n) + step * BigInt(index), name, tag).trimEnd()
  })
}

/** Returns the lines in another order, which is the same for each run. */
export function shuffle(lines: readonly string[]): string[] {
  const prime = 7_368_787
  return lines.map((_, index) => lines[(index * prime) % lines.length] ?? '')
}

export function writeLines(folder: string, lines: readonly string[], name = 'plants.ndjson') {
  const path = join(folder, name)
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}

/** Counts the plants in the file of a store, without the program. A missing file has none. */
export function countPlants(path: string): number {
  return Number(queryStoreFile(path, 'SELECT count(*) AS count FROM plants')[0]?.['count'] ?? 0)
}

function queryStoreFile(path: string, sql: string): Record<string, unknown>[] {
  try {
    return existsSync(path) ? queryFile(path, sql, { readOnly: true }) : []
  } catch {
    return [] // the file has no tables yet
  }
}

/** Returns the peak memory of a process in MiB, or undefined if the process has ended. */
export function readPeakMemory(pid: number | undefined): number | undefined {
  const path = `/proc/${pid}/status`
  const status = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(status) ?? []
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
}
