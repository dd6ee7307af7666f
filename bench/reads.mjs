import { get } from 'node:http'
import { join } from 'node:path'
import { median, note, print, textOf } from './figures.mjs'
import { plants } from './import/programs.mjs'
import { writeRows } from './import/rows.mjs'
import { run } from './import/run.mjs'
import { peers } from './peers.mjs'
import { memoryOf } from './processor.mjs'
import { load, start } from './server.mjs'

const existing = 10_000
const base = String(2n ** 52n)
const streamed = 1_000_000

/** Reads of a plant, beside those of echo, and a stream of a million plants. */
export async function measureReads({ folder, env, seconds, rounds }) {
  const store = join(folder, 'reads.db')
  const path = join(folder, 'reads.ndjson')
  const readers = { ...env, PLANTS_TOKEN: env.PLANTS_SERVE_TOKEN }
  const servers = {
    echo: peers.echo,
    serve: { ...peers.serve, args: (turn) => [...peers.serve.args(turn), '--allow', 'create,read'] },
  }
  const ask = async (name, orders) => {
    const peer = servers[name]
    const { url, pid, stop } = await start(peer, { folder, store, env })
    const found = await orders({ url, pid })
    await stop()
    if (found.failure) throw new Error(`${peer.title}: ${found.failure}`)
    return found
  }
  await ask('serve', (server) => load({ servers: [server], status: 200, base, count: existing }, env))
  const rates = { echo: [], serve: [] }
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, found] of Object.entries(rates)) {
      const orders = { status: 200, base, existing: existing - 64, warmUp: Math.min(2, seconds), seconds }
      found.push((await ask(name, (server) => load({ servers: [server], ...orders }, env))).rate)
    }
  }
  const ratio = median(rates.serve) / median(rates.echo)
  print(`\nReads of a plant: plants serve ${textOf(median(rates.serve), 0)}/s, echo ${textOf(median(rates.echo), 0)}/s`)
  print(`plants serve is ${textOf(ratio, 2)} x echo (at least 0.8: ${ratio >= 0.8 ? 'met' : 'NOT MET'})`)

  await writeRows(path, { count: streamed, order: 'random', format: 'ndjson' })
  await run([process.execPath, plants, 'import', path, '--store', store], { env: readers })
  const turns = []
  for (let round = 0; round < rounds; round += 1)
    turns.push(await ask('serve', (server) => stream(server, streamed, env)))
  const rate = median(turns.map((turn) => turn.rate))
  const singles = Object.entries(rates).map(([name, found]) => ({
    title: `${servers[name].title}, one plant a request`,
    rate: median(found),
  }))
  const all = {
    title: 'plants serve, a million plants in one response',
    rate,
    peak: median(turns.map(({ peak }) => peak)),
  }
  note('reads', { title: 'Reads', rows: [...singles, all] })
  print(
    `A stream of ${(streamed + existing).toLocaleString('en')} plants: ${textOf(rate, 0)}/s (at least 300,000: ${rate >= 300_000 ? 'met' : 'NOT MET'})`,
  )
  print(
    `Memory of the service: ${turns.map(({ before, peak }) => `${textOf(before / 1000, 0)} MB before, at most ${textOf(peak / 1000, 0)} MB`).join('; ')}\n`,
  )
}

/**
 * Reads all plants of a service in one response.
 *
 * @param count how many plants there are at least
 * @returns plants a second, and the memory of the service before and at most, in kB; `failure` when not all came
 */
export async function stream({ url, pid }, count, { PLANTS_SERVE_TOKEN: token }) {
  const before = memoryOf(pid, 'VmRSS')
  const begin = performance.now()
  const headers = { authorization: `Bearer ${token}`, accept: 'application/x-ndjson' }
  const response = await new Promise((resolve, reject) =>
    get(`${url}/plants`, { headers }, resolve).on('error', reject),
  )
  let plants = 0
  for await (const chunk of response)
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) plants += 1
  const seconds = (performance.now() - begin) / 1000
  if (response.statusCode !== 200 || plants < count)
    return { failure: `it answered ${response.statusCode} with ${plants} plants` }
  return { rate: plants / seconds, before, peak: memoryOf(pid, 'VmHWM') }
}
