import { describe, expect, test } from 'vitest'
import { Crowd } from '../../helpers/crowd.js'
import { ServiceNode } from '../../helpers/node.js'
import { installations } from '../../helpers/postgres/installation.js'
import { ownServer } from '../../helpers/postgres.js'
import { isSoak, rounds } from '../../helpers/rounds.js'

const installation = installations.find(({ isPacked }) => !isPacked)
const creates = Math.min(200_000, rounds(2000))
const standbyName = 'standby'

/** pg_basebackup, which makes a standby, is Debian's. */
describe.skipIf(!isSoak || installation === undefined)('over two nodes, with a standby that each commit waits for (in a soak)', () => {
  test('nothing that was answered is lost when the primary crashes and the standby is promoted', { timeout: rounds(60_000) }, async () => {
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

  test('nothing is answered with 200 while the standby is away, and all goes on when it is back', { timeout: rounds(60_000) }, async () => {
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
})

/** The standby counts from a moment on when the nodes are connected, as it does where something watches over a cluster. */
async function cluster() {
  const primary = await ownServer({ ...(installation && { installation }) })
  const standby = await ownServer({ ...(installation && { installation }), primary, settings: [`cluster_name = '${standbyName}'`] })
  const url = `postgres://plants@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/plants`
  const nodes = await Promise.all([1, 2].map(() => ServiceNode.start(['--store', url, '--timeout', '2s'])))
  await primary.admin(`ALTER SYSTEM SET synchronous_standby_names = '${standbyName}'`)
  await primary.admin('SELECT pg_reload_conf()')
  const ways = nodes.map(({ socket: socketPath }) => ({ origin: 'http://node', socketPath }))
  return { primary, standby, crowd: new Crowd({ creates, atOnce: 128, ways }) }
}
