import { existsSync } from 'node:fs'
import { expect } from 'vitest'
import { journalsOf, rejectedIn } from './import.js'
import { World } from './world.js'

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
  ): Promise<Imported> {
    const words = typeof args === 'string' ? (args.match(/\S+/g) ?? []) : args
    const { code, out, err } = await this.run(['import', ...words], {
      ...(stdin !== undefined && { stdin }),
    })
    expect(out !== '').toBe(code === 0 || code === 6)
    return { code, ...(out !== '' && countsIn(out)), err }
  }

  /** The plants in the store, a line of JSON each. */
  async list(): Promise<string> {
    if (!existsSync(this.store)) return ''
    const { out, err } = await this.run('list')
    expect(err).toBe('')
    return out
  }

  /** The imports into services that are not done. */
  get journals(): string[] {
    return journalsOf(this)
  }

  rejected(rejects: string): ReturnType<typeof rejectedIn> {
    return rejectedIn(this, rejects)
  }
}

export function plant(id: number | bigint | string, name = `Plant ${id}`, tag?: string): string {
  return `${JSON.stringify({ id: 0, name, tag }).replace('0', String(id))}\n`
}

function countsIn(out: string): object {
  const { rejected, reasons, ...counts } = JSON.parse(out.trimEnd().split('\n').at(-1) ?? '')
  const { created, updated, skipped, unknown } = counts
  const all = [created, updated, skipped, unknown, rejected]
  expect(all.every((count) => count >= 0)).toBe(true)
  expect(reasons).not.toEqual({})
  expect(Object.values<number>(reasons ?? {}).reduce((sum, count) => sum + count, 0)).toBe(rejected)
  const some = Object.entries(counts).filter(([, count]) => count !== 0)
  return { ...Object.fromEntries(some), ...(rejected > 0 && { rejected: reasons }) }
}

/** Blank lines, after which an import begins another chunk. */
export const nextChunk = '\n'.repeat(1_048_576)
