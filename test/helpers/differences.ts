import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bin } from './process.js'

/** Whether the program under test is the single file, or another that runs on Bun. */
export const isSingleFile = / on Bun /.test(
  spawnSync(bin, ['doctor', '--output', 'json'], { env: { PATH: process.env['PATH'] } }).stdout.toString(),
)

const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
const [, table = ''] = /^\| Request \| Package \| Single file \|\n.*\n((?:\|.*\n)+)/m.exec(readme) ?? []

/** What the README says that the program under test answers, by request; the package and the single file differ there. */
export const differences = new Map(
  table
    .trimEnd()
    .split('\n')
    .map((row) => row.slice(2, -2).replaceAll('`', '').split(' | '))
    .map(([request = '', ofPackage = '', ofSingleFile = '']) => [request, isSingleFile ? ofSingleFile : ofPackage]),
)

/** Whether a test of such a request is for the package alone. */
export function differs(request: string): boolean {
  return isSingleFile && differences.has(request)
}
