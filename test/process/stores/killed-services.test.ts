import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isSoak, scaleRounds } from '../../helpers/sandbox/rounds.js'
import { DatabaseSync, readIds } from '../../helpers/sandbox/sqlite-file.js'
import { columns, crowdOf, random, ServiceNode, withSeed } from './killed-services-steps.js'

const kills = scaleRounds(2)
/** A million in a soak of 15 rounds, which has 30 kills: a life as long as that takes a while. */
const many = isSoak ? scaleRounds(66_667) : 1500

test(`of ${many} creates none is lost, changed or made twice when the service is killed ${kills} times`, async () => {
  const node = await new ServiceNode([]).start()
  const crowd = crowdOf(many, 100, [node])
  const running = crowd.run()
  for (let kill = 0; kill < kills; kill += 1) {
    await crowd.until(((kill + random()) * many * 0.9) / kills)
    expect(await node.end()).toMatchObject({ code: 137, err: '' })
    await node.startInVain()
    await node.start()
  }
  await running
  expect(await node.end('SIGTERM')).toMatchObject({ code: 0, err: '' })
  const store = join(node.folder, 'data/plants.db')
  expect(readIds(store)).toHaveLength(many)
  const db = new DatabaseSync(store, { readBigInts: true })
  onTestFinished(() => db.close())
  crowd.check(db.prepare(`SELECT ${columns} FROM plants`).iterate())
  expect(crowd.wrong, withSeed).toEqual([])
})
