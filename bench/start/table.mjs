import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { fetchNode } from '../../test/nodes.mjs'
import { installed } from '../import/programs.mjs'
import { peers as servers } from '../peers.mjs'
import { start } from '../server.mjs'
import { printBars } from './bars.mjs'
import { others } from './others.mjs'
import { place } from './place.mjs'
import { measure, peakOf } from './process.mjs'
import { printTimes } from './report.mjs'
import { compiled, onNode, rowsOf } from './subjects.mjs'

const mostPeaks = 5 // runs that memory is taken from; it hardly differs

/** Starts everything in turns, and prints what it took beside the bars. */
export async function measureTable({ folder, env, runs, warmUps, nodes, fetched }) {
  const subjects = [...nodes, ...fetched.map((version) => fetchNode(version))].map((node) => onNode(node, env))
  const file = compiled(folder, env)
  const token = randomBytes(16).toString('hex')
  const store = join(folder, 'served.db')
  const { url, stop } = await start(servers.serve, { folder, store, env: { ...env, PLANTS_SERVE_TOKEN: token } })
  const bench = place({ folder, env, url, token, plants: subjects[0].command })
  const rows = [...subjects, file].filter(Boolean).flatMap((subject) => rowsOf(subject, bench))
  const entries = [...rows, ...installed(others(bench), env)].map((row) => ({ ...row, env: row.env ?? env, times: [] }))
  for (let run = -warmUps; run < runs; run += 1) {
    for (const entry of entries) {
      const time = measure(entry)
      if (run >= 0) entry.times.push(time)
    }
  }
  for (const entry of entries) entry.peak = peakOf(entry, { folder, runs: Math.min(runs, mostPeaks) })
  await stop()
  printTimes(entries)
  printBars(entries)
}
