// Imports and exports beside the loaders that people know: npm run bench:import [-- FLAG...]
//   --rows 500000  --rounds 3  --only ordered,random,export,remote
//   --node PATH     the Node that runs plants
//   --folder PATH   where the temporary folder is made, and so which disk is written to
// Each is a whole process with its start. They take turns, so that a machine that slows down slows all of them; the
// medians and their ratios count. After each turn it is checked that the plants are there.
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killAll } from './children.mjs'
import { measureExport, measureImports } from './import/files.mjs'
import { measureRemote } from './import/remote.mjs'
import { printMachine } from './machine.mjs'
import { cleanEnvironment, end, homeIn, temporaryFolder } from './place.mjs'

const parts = {
  ordered: (bench) => measureImports('ordered', bench),
  random: (bench) => measureImports('random', bench),
  export: measureExport,
  remote: measureRemote,
}
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '500000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: Object.keys(parts).join() },
    node: { type: 'string', default: process.execPath },
    folder: { type: 'string', default: tmpdir() },
  },
})
const [rows, rounds, names] = [Number(flags.rows), Number(flags.rounds), flags.only.split(',')]
const areWhole = [rows, rounds].every((count) => Number.isSafeInteger(count) && count > 0)
if (!areWhole || !names.every((name) => Object.hasOwn(parts, name))) {
  end(2, `--rows and --rounds must be whole numbers from 1 up, --only some of ${Object.keys(parts).join()}`)
}

const folder = temporaryFolder(flags.folder, killAll)
const env = { ...cleanEnvironment(), ...homeIn(folder) }
const version = execFileSync(flags.node, ['-p', 'process.versions.node'], { env, encoding: 'utf8' }).trim()
const bench = {
  folder,
  env,
  rows,
  rounds,
  node: flags.node,
  nodeMajor: Number.parseInt(version, 10),
  store: join(folder, 'store.db'),
}

printMachine(folder, `Medians of ${rounds} rounds in turn`, version)
for (const name of names) await parts[name](bench)
