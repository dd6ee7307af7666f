import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bin } from './process.js'

/** Whether the program under test is the single file, or another that runs on Bun. */
export const isSingleFile = / on Bun /.test(
  spawnSync(bin, ['doctor', '--output', 'ndjson'], { env: { PATH: process.env['PATH'] } }).stdout.toString(),
)

const page = readFileSync(join(import.meta.dirname, '../../docs/platforms.md'), 'utf8')

/**
 * What docs/platforms.md says that the program under test responds, by request; the package and the single file differ
 * there.
 */
export const differences = tableOf('Request')

/** With which code a `plants list` ends, by what is odd around it. */
export const oddSurroundings = tableOf('Environment')

function tableOf(head: string): ReadonlyMap<string, string> {
  const [, table = ''] =
    RegExp(`^\\| ${head} \\| Package \\| Single file \\|\\n.*\\n((?:\\|.*\\n)+)`, 'm').exec(page) ?? []
  const rows = table.trimEnd().split('\n')
  const cells = rows.map((row) => row.slice(2, -2).replaceAll('`', '').split(' | '))
  return new Map(
    cells.map(([name = '', ofPackage = '', ofSingleFile = '']) => [name, isSingleFile ? ofSingleFile : ofPackage]),
  )
}

/** Whether a test of such a request is for the package alone. */
export function differs(request: string): boolean {
  return isSingleFile && differences.has(request)
}
