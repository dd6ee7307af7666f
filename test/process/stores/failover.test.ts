import { describe, expect, test } from 'vitest'
import { Crowd } from '../../helpers/crowd.js'
import { ServiceNode } from '../../helpers/node.js'
import { hasPatroni, patroniCluster, patroniDefaults } from '../../helpers/patroni.js'
import { installations } from '../../helpers/postgres/installation.js'
import { ownServer } from '../../helpers/postgres.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { runPlants } from '../../helpers/run.js'

const installation = installations.find(({ isPacked }) => !isPacked)
const creates = Math.min(200_000, rounds(2000))
const standbyName = 'standby'

/** pg_basebackup, which makes a standby, is Debian's. */
describe.skipIf(!isSoak || installation === undefined)(
  'over two nodes, with a standby that each commit waits for (in a soak)',
  () => {
    test('nothing that was answered is lost when the primary crashes and the standby is promoted', {
      timeout: rounds(60_000),
    }, async () => {
      const { primary, standby, crowd } = await cluster()
      const running = crowd.run()
      await crowd.until(() => crowd.done >= creates / 2)
      await primary.stop('immediate')
      await standby.admin('SELECT pg_promote()')
      await running
      await crowd.check(standby)
      expect(crowd.wrong).toEqual([])
      process.stdout.write(`failover: ${JSON.stringify({ creates, gap: crowd.gap, ...crowd.answers })}\n`)
    })

    test('nothing is answered with 200 while the standby is away, and all goes on when it is back', {
      timeout: rounds(60_000),
    }, async () => {
      const { primary, standby, crowd } = await cluster()
      const running = crowd.run()
      await crowd.until(() => crowd.done >= creates / 3)
      await standby.stop()
      const failures = () => crowd.count('500', '503')
      const before = failures()
      await crowd.until(() => failures() > before + 256) // by now what was on its way has come, to each of the callers
      const created = crowd.count('200')
      await crowd.until(() => failures() > before + 500)
      expect(crowd.count('200')).toBe(created)
      await standby.start()
      await crowd.until(() => crowd.done >= (creates * 2) / 3)
      await primary.stop('immediate')
      await standby.admin('SELECT pg_promote()')
      await running
      await crowd.check(standby)
      expect(crowd.wrong).toEqual([])
      process.stdout.write(`standby away: ${JSON.stringify({ creates, ...crowd.answers })}\n`)
    })
  },
)

describe.skipIf(!isSoak || installation === undefined || !hasPatroni())(
  'over two nodes, with Patroni (in a soak)',
  () => {
    const kills = rounds(0.5)

    test('creates go on and none is lost when the primary is killed (needs Patroni and etcd)', {
      timeout: rounds(120_000),
    }, async () => {
      let [primary, standby] = await patroniCluster(installation?.bin ?? '')
      const url = `postgres://plants@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/plants?target_session_attrs=read-write`
      expect(await runPlants(['stores', 'init', url])).toMatchObject({ code: 0 })
      const nodes = await Promise.all([1, 2].map(() => ServiceNode.start(['--store', url])))
      const ways = nodes.map(({ socket: socketPath }) => ({ origin: 'http://node', socketPath }))
      const crowd = new Crowd({ creates: rounds(500_000), atOnce: 16, ways })
      const running = crowd.run()
      const more = (count: number) => {
        const due = crowd.done + count
        return crowd.until(() => crowd.done >= due)
      }
      const gaps: number[] = []
      for (let kill = 0; kill < kills; kill += 1) {
        await more(1000)
        crowd.gap = 0
        await primary.kill()
        await standby.becomes('primary')
        await more(1000)
        gaps.push(Math.round(crowd.gap))
        primary.start()
        await primary.becomes('synchronous')
        ;[primary, standby] = [standby, primary]
      }
      crowd.end()
      await running
      await crowd.check(primary)
      expect(crowd.wrong).toEqual([])
      process.stdout.write(
        `Patroni: ${JSON.stringify({ ...patroniDefaults, creates: crowd.done, gaps, ...crowd.answers })}\n`,
      )
      for (const node of nodes) expect(await (await node.running()).stop()).toMatchObject({ code: 0 })
    })
  },
)

/**
 * The standby counts from a moment on when the nodes are connected, as it does where something watches over a cluster.
 */
async function cluster() {
  const primary = await ownServer({ ...(installation && { installation }) })
  const standby = await ownServer({
    ...(installation && { installation }),
    primary,
    settings: [`cluster_name = '${standbyName}'`],
  })
  const url = `postgres://plants@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/plants`
  const nodes = await Promise.all([1, 2].map(() => ServiceNode.start(['--store', url, '--timeout', '2s'])))
  await primary.admin(`ALTER SYSTEM SET synchronous_standby_names = '${standbyName}'`)
  await primary.admin('SELECT pg_reload_conf()')
  const ways = nodes.map(({ socket: socketPath }) => ({ origin: 'http://node', socketPath }))
  return { primary, standby, crowd: new Crowd({ creates, atOnce: 128, ways }) }
}
