// The service under load beside programs of its kind: npm run bench:serve [-- FLAG...]
//   --seconds 5  --rounds 3  --peers echo,serve,prism,json-server
//   --store ADDRESS   the store of "plants serve", instead of a new file
//   --folder PATH     where the temporary folder is made, and so which disk is written to
//   --creates 5000000 what happens to memory over so many creates
//   --reads           a plant at a time, and a stream of a million plants
// The servers take turns, so that a machine that slows down slows all of them; the medians and their ratios count.

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killAll } from './children.mjs'
import { printMachine } from './machine.mjs'
import { install, listOf, peers } from './peers.mjs'
import { cleanEnvironment, end, homeIn, temporaryFolder } from './place.mjs'
import { measureReads } from './reads.mjs'
import { printBars, printMemory, printTable } from './report.mjs'
import { countLines, load, start, tailOf } from './server.mjs'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    peers: { type: 'string', default: Object.keys(peers).join() },
    store: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    creates: { type: 'string' },
    reads: { type: 'boolean', default: false },
  },
})
const seconds = Number(flags.seconds)
const rounds = Number(flags.rounds)
const names = flags.peers.split(',')
const creates = Number(flags.creates ?? 0)
if (!(seconds > 0 && rounds > 0 && creates >= 0 && names.every((name) => Object.hasOwn(peers, name)))) {
  end(2, `--seconds, --rounds and --creates must be above 0, --peers some of ${Object.keys(peers).join()}`)
}

const folder = temporaryFolder(flags.folder, killAll)
const environment = cleanEnvironment()
const env = { ...environment, ...homeIn(folder), PLANTS_SERVE_TOKEN: randomBytes(16).toString('hex') }
const stores = { serve: flags.store ?? join(folder, 'serve.db') }
const used = new Set([...names, ...(creates ? ['serve'] : [])].filter((name) => name in stores))

install(names, environment)
printMachine(folder, `64 connections, medians of ${rounds} rounds of ${seconds} s in turn`)
const expected = await countPlants()
const turns = Object.fromEntries(names.map((name) => [name, []]))
for (let round = 0; round < rounds; round += 1) {
  for (const name of names) turns[name].push(await take(name, { seconds, warmUp: Math.min(2, seconds) }))
}
printTable(turns)
printBars(turns)
if (creates) printMemory(await take('serve', { count: creates }))
if (flags.reads) await measureReads({ folder, env, seconds, rounds })
const counted = await countPlants()
for (const name of used) {
  const text = `${peers[name].title}: ${expected[name]} plants were there or acknowledged, ${counted[name]} are stored`
  if (counted[name] !== expected[name]) end(1, text)
  process.stdout.write(`${text}\n`)
}

/** One server, from its start to its end, under load. */
async function take(name, orders) {
  const peer = peers[name]
  const { url, pid, stop } = await start(peer, { folder, store: stores[name], env })
  const found = await load({ servers: [{ url, pid }], status: peer.status ?? 200, base: firstId(name), ...orders }, env)
  if (found.failure) end(1, `${peer.title}: ${found.failure}\n${tailOf(folder)}`)
  await stop()
  if (used.has(name)) expected[name] += found.acknowledged
  return found
}

/** 52 bits, because json-server rounds what is above 2^53; 60 bits for a store that may hold plants already. */
function firstId(name) {
  const [bit, bytes] = name === 'serve' && flags.store ? [59n, 7] : [51n, 6]
  return String((1n << bit) + BigInt(`0x${randomBytes(bytes).toString('hex')}`))
}

async function countPlants() {
  const counts = {}
  for (const name of used) {
    const isMissing = !stores[name].includes('://') && !existsSync(stores[name]) // its service creates it
    counts[name] = isMissing ? 0 : await countLines(listOf(stores[name]), env)
  }
  return counts
}
