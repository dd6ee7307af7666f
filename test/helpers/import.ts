import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { donePrefix } from '../../src/stores/common/store.js'
import { DatabaseSync } from './database.js'
import type { World } from './world.js'

/** The summary of an import, without what is updated. */
interface Counts {
  created: number
  skipped: number
  rejected: number
  /** Undefined if none is rejected. */
  reasons?: Record<string, number> | undefined
  unknown: number
}

const names = [
  ...['Fern', 'Zypressen-Wolfsmilch', 'Подорожник', '银杏', 'زيتون', 'カエデ'],
  ...['A "quoted" \\ one', '🌵 Saguaro'],
]

/** Lines of NDJSON in the order of their ids, which are all over int64, just as an export writes them. */
export function plantLines(count: number): string[] {
  const step = 2n ** 64n / BigInt(count)
  return Array.from({ length: count }, (_, index) => {
    const id = -(2n ** 63n) + step * BigInt(index)
    const name = JSON.stringify(`${names[index % names.length]} ${index}`)
    return `{"id":${id},"name":${name}${index % 3 === 0 ? '' : `,"tag":"tag ${index % 100}"`}}`
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

export function countsOf(out: string): Counts {
  const { created, skipped, rejected, reasons, unknown } = JSON.parse(out) as Counts
  return { created, skipped, rejected, reasons, unknown }
}

export function allCreated(created: number): Counts {
  return { created, skipped: 0, rejected: 0, unknown: 0 }
}

/** The ids of imports into services that are not done. */
export function journalsOf({ state }: World): string[] {
  const path = join(state, 'imports.db')
  if (!existsSync(path)) return []
  try {
    const db = new DatabaseSync(path, { readOnly: true })
    const rows = db.prepare(`SELECT id FROM imports WHERE state NOT LIKE '${donePrefix}%'`).all()
    db.close()
    return rows.map((row) => String(row['id']))
  } catch {
    return [] // it is just being made
  }
}

interface Rejected {
  line: number
  reason: string
  /** what it had: the members of an object, the text of a line that is no JSON, or cells */
  record: unknown
}

/** The records of a rejects file, a table or NDJSON. */
export function rejectedIn(world: World, rejects: string): Rejected[] {
  const text = world.read(rejects)
  if (text.startsWith('{'))
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => {
        const { rejected_line, rejected_reason, rejected_text, ...record } = JSON.parse(line)
        return { line: rejected_line, reason: rejected_reason, record: rejected_text ?? record }
      })
  const [head = '', ...rows] = text
    .replace(/^\ufeff/, '')
    .split('\n')
    .slice(0, -1)
  const delimiter = head.charAt('rejected_line'.length)
  expect(head.startsWith(`rejected_line${delimiter}rejected_reason`)).toBe(true)
  return rows.map((row) => {
    const {
      line,
      quoted = '',
      plain = '',
      cells = '',
    } = /^(?<line>\d+).(?:"(?<quoted>(?:[^"]|"")*)"|(?<plain>[^",;\t]*)).?(?<cells>.*)$/.exec(row)
      ?.groups ?? {}
    return { line: Number(line), reason: quoted.replaceAll('""', '"') || plain, record: cells }
  })
}

/** How many plants are in a store, past the program; none while there is no store. */
export function countOf(path: string): number {
  if (!existsSync(path)) return 0
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return Number(db.prepare('SELECT count(*) AS count FROM plants').get()?.['count'])
  } catch {
    return 0 // it is just being made
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
  const [, kilobytes] =
    /VmHWM:\s+(\d+) kB/.exec(existsSync(path) ? readFileSync(path, 'utf8') : '') ?? []
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
}

/** How long a process has computed, in seconds; 0 when it is gone. */
export function computedBy(pid: number | undefined): number {
  const path = `/proc/${pid}/stat`
  const fields = existsSync(path)
    ? readFileSync(path, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')
    : []
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100 // utime and stime of proc(5), in ticks
}

export function grouped(number: number): string {
  return number.toLocaleString('en-US')
}
