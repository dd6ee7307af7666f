import { spawnSync } from 'node:child_process'
import { bin } from './process.js'

/** Whether the program under test is the standalone executable, or another that runs on Bun. */
const isExecutable = / on bun /.test(
  spawnSync(bin, ['doctor', '--output', 'ndjson'], {
    env: { PATH: process.env['PATH'] },
  }).stdout.toString(),
)

/** With which code a `plants list` ends, by what is odd around it. */
export const oddSurroundings = ofProgram({
  'the current directory is gone': ['0', '1'],
  'no /proc on Linux': ['0', '134 or 4'],
})

/** Whether clients that connect while a service closes its port are answered. Bun closes their connections with it. */
export const answersAtClose = !isExecutable

function ofProgram(
  table: Record<string, [ofPackage: string, ofExecutable: string]>,
): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(table).map(([name, [ofPackage, ofExecutable]]) => [
      name,
      isExecutable ? ofExecutable : ofPackage,
    ]),
  )
}
