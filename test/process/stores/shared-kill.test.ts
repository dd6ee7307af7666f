import { expect, test } from 'vitest'
import { balancer, hasBalancer } from '../../helpers/balancer.js'
import { Crowd } from '../../helpers/crowd.js'
import { ServiceNode } from '../../helpers/node.js'
import { ownServer } from '../../helpers/postgres.js'
import { isSoak, rounds } from '../../helpers/rounds.js'

const creates = rounds(2000)
const nodeCount = isSoak ? 4 : 2
const kills = isSoak ? Math.min(40, rounds(2)) : 2
const restarts = 3
const balanced = hasBalancer ? 'HAProxy and ' : ''
const name = `of ${creates} creates over ${balanced}${nodeCount} nodes none is lost, changed or made twice when nodes are killed and their database crashes`

test(name, { timeout: rounds(60_000) }, async () => {
  const database = await ownServer()
  const args = ['--store', database.url, '--timeout', '2s']
  const nodes = await Promise.all(Array.from({ length: nodeCount }, () => ServiceNode.start(args)))
  const sockets = nodes.map(({ socket }) => socket)
  const ways = hasBalancer
    ? [{ origin: await balancer(sockets) }]
    : sockets.map((socketPath) => ({ origin: 'http://node', socketPath }))
  const crowd = new Crowd({ creates, atOnce: 64 * nodeCount, ways })
  const began = performance.now()
  const running = crowd.run()

  for (const [at, event] of plan().entries()) {
    await crowd.until(() => crowd.done >= ((at + 0.5) / plan().length) * creates * 0.9)
    if (event === 'kill') {
      const node = nodes[at % nodeCount]
      await node?.kill()
      await node?.start()
    } else {
      await database.stop('immediate')
      const before = crowd.count('500', '503')
      if (event === 'outage') await crowd.until(() => crowd.count('500', '503') > before)
      await database.start()
    }
  }
  await running
  const seconds = (performance.now() - began) / 1000
  await crowd.check(database)
  expect(crowd.wrong).toEqual([])
  if (isSoak) process.stdout.write(`${JSON.stringify({ creates, seconds, gap: crowd.gap, ...crowd.answers })}\n`)
  for (const node of nodes) expect(await (await node.running()).stop()).toMatchObject({ code: 0 })
})

/**
 * What happens, one after the other, while the creates go on. In a soak the database is away once for longer than a
 * request waits.
 */
function plan(): ('kill' | 'crash' | 'outage')[] {
  const events = Array.from({ length: kills + restarts }, () => 'kill' as 'kill' | 'crash' | 'outage')
  for (let restart = 0; restart < restarts; restart += 1)
    events[Math.floor(((restart + 0.5) * events.length) / restarts)] = isSoak && restart === 1 ? 'outage' : 'crash'
  return events
}
