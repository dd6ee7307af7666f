import { join } from 'node:path'
import { note, print, printColumns, textOf } from '../figures.mjs'
import { recordCommands } from './commands.mjs'
import { costsOf } from './costs.mjs'
import { loadsReader } from './loads.mjs'

const source = (path) => join(import.meta.dirname, '../../src', path)

/**
 * What the program is made from: what is imported of it, and which package, or module of Node, it is found by, where it
 * has another name. Of some the program uses a small part, which is what its own door to them imports.
 */
const parts = {
  commander: { imports: ['commander'] },
  'SQLite driver': {
    imports: [source('platform/sqlite.ts')],
    call: 'describeDriver',
    mark: '@photostructure/sqlite',
    module: 'sqlite',
  },
  zod: { imports: [source('plant/plant-schema.ts')] },
  conf: { imports: ['conf'] },
  '@inquirer/prompts': { imports: [source('cli/prompts.ts')], mark: '@inquirer/core' },
  chalk: { imports: ['chalk'] },
  execa: { imports: ['execa'] },
  'HTTP client': { imports: ['node:http'], module: 'http' },
  pino: { imports: ['pino'] },
  'prom-client': { imports: ['prom-client'] },
}
const most = 15

/** Prints what loading each package takes, and which commands load it. */
export async function measurePackages(bench) {
  const runs = Math.min(bench.runs, most)
  const costs = await costsOf(parts, { ...bench, runs, node: bench.nodes[0] })
  note('packages', {
    title: 'Load times of packages',
    rows: Object.entries(costs).map(([title, cost]) => ({ title, ...cost })),
  })
  printColumns([
    ['to load', 'ms', 'KB'],
    ...Object.entries(costs).map(([name, { time, size }]) => [name, textOf(time, 1), textOf(size, 0)]),
  ])
  print('')
  const read = await loadsReader()
  const records = await recordCommands({ ...bench, node: bench.nodes[0] })
  const width = Math.max(...records.map(({ title }) => title.length))
  for (const { title, record } of records)
    print(`${title.padEnd(width)}  ${partsIn(read(record)).join(', ') || 'none of them'}`)
  print('')
}

function partsIn({ packages, modules }) {
  return Object.entries(parts).flatMap(([name, { mark = name, module }]) =>
    packages.includes(mark) || modules.includes(module) ? name : [],
  )
}
