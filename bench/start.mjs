// What a whole process costs, from exec to exit, beside programs that everybody knows: npm run bench:start [-- FLAG...]
//   --runs 30            how often each is started
//   --only table,files   the table with its bars, or the files of the bundle that a create loads
//   --node PATH          the Node that runs plants; it may be repeated. The first one is measured more closely
//   --matrix             Node 22, 24 and 26 besides, which are fetched from the registry
//   --folder PATH        where the temporary folder is made, and so which disk is written to
// The processes take turns, so that a machine that slows down slows all of them; the medians and their ratios count.
import { spawnSync } from 'node:child_process'
import { loadavg, tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { versions } from '../test/nodes.mjs'
import { killAll } from './children.mjs'
import { print } from './figures.mjs'
import { printMachine } from './machine.mjs'
import { cleanEnvironment, end, homeIn, temporaryFolder } from './place.mjs'
import { measureFiles } from './start/files.mjs'
import { measureTable } from './start/table.mjs'

const parts = { table: measureTable, files: measureFiles }
const { values: flags } = parseArgs({
  options: {
    runs: { type: 'string', default: '30' },
    only: { type: 'string', default: Object.keys(parts).join() },
    node: { type: 'string', multiple: true, default: [process.execPath] },
    matrix: { type: 'boolean', default: false },
    folder: { type: 'string', default: tmpdir() },
  },
})
const [runs, names] = [Number(flags.runs), flags.only.split(',')]
if (!Number.isSafeInteger(runs) || runs < 1 || !names.every((name) => Object.hasOwn(parts, name))) {
  end(2, `--runs must be a whole number from 1 up, --only some of ${Object.keys(parts).join()}`)
}
const unusable = flags.node.find((node) => spawnSync(node, ['--version']).status !== 0)
if (unusable !== undefined) end(2, `--node ${unusable} is no Node that can be started`)

const folder = temporaryFolder(flags.folder, killAll)
const env = { ...cleanEnvironment(), ...homeIn(folder), NO_PROXY: '*', no_proxy: '*' }
const fetched = flags.matrix ? versions.filter((version) => !version.startsWith('20')) : []

const warmUps = Math.min(2, runs - 1)
const [load] = loadavg()

printMachine(folder, `Medians of ${runs} runs in turn, after ${warmUps} that are not counted`)
if (load > 0.5)
  print(`THE MACHINE IS BUSY WITH SOMETHING ELSE (load ${load.toFixed(1)}): measure again when it is not\n`)
for (const name of names) await parts[name]({ folder, env, runs, warmUps, nodes: flags.node, fetched })
