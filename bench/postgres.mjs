// The shared database beside a file, the bare protocol and PostgreSQL's own COPY: npm run bench:postgres [-- FLAG...]
//   --seconds 5  --rounds 3  --rows 500000  --only service,nodes,ordered,random,export
//   --memory         what happens to the memory of a node over a million creates
//   --grow           what 10 million plants take on the disk, and how fast they come as the table grows; needs 6 GB of
// disk
//   --folder PATH    where the temporary folder is made, and so which disk is written to
// The server is the one that the tests use, in a temporary folder, as it is without any settings. All take turns, so
// that a machine that slows down slows all of them; the medians and their ratios count. After each turn it is checked
// that the plants are there.
import { randomBytes } from 'node:crypto'
import { chmodSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { killAll } from './children.mjs'
import { note } from './figures.mjs'
import { printMachine } from './machine.mjs'
import { cleanEnvironment, end, homeIn, temporaryFolder } from './place.mjs'
import { measureExport } from './postgres/export.mjs'
import { measureGrowth } from './postgres/grow.mjs'
import { measureImports } from './postgres/import.mjs'
import { measureMemory } from './postgres/memory.mjs'
import { measureNodes } from './postgres/nodes.mjs'
import { startServer } from './postgres/server.mjs'
import { measureService } from './postgres/service.mjs'

const parts = {
  service: measureService,
  nodes: measureNodes,
  ordered: (bench) => measureImports('ordered', bench),
  random: (bench) => measureImports('random', bench),
  export: measureExport,
}
const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    rows: { type: 'string', default: '500000' },
    only: { type: 'string' },
    memory: { type: 'boolean', default: false },
    grow: { type: 'boolean', default: false },
    folder: { type: 'string', default: tmpdir() },
  },
})
const isSpecial = flags.memory || flags.grow
const names = (flags.only ?? (isSpecial ? '' : Object.keys(parts).join())).split(',').filter(Boolean)
const [seconds, rounds, rows] = [flags.seconds, flags.rounds, flags.rows].map(Number)
const areWhole = [rounds, rows].every((count) => Number.isSafeInteger(count) && count > 0)
if (!(areWhole && seconds > 0 && names.every((name) => Object.hasOwn(parts, name)))) {
  end(
    2,
    `--rounds and --rows must be whole numbers from 1 up, --seconds above 0, --only some of ${Object.keys(parts).join()}`,
  )
}

const folder = temporaryFolder(flags.folder, killAll)
chmodSync(folder, 0o711) // the server is somebody else where we are root
const token = randomBytes(16).toString('hex')
const env = { ...cleanEnvironment(), ...homeIn(folder), PLANTS_SERVE_TOKEN: token }
const server = await startServer(folder, env)
try {
  note('versions', { PostgreSQL: server.version.split(' ')[1] })
  printMachine(folder, `${server.version}, as it is without settings; medians of ${rounds} rounds in turn`)
  const bench = { folder, env, server, seconds, rounds, rows }
  for (const name of names) await parts[name](bench)
  if (flags.memory) await measureMemory(bench)
  if (flags.grow) await measureGrowth(bench)
} finally {
  await server.remove()
}
