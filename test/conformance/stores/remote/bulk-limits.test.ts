import { describe, expect, test } from 'vitest'
import { type Deed, PlantService } from '../../../helpers/plant-service.js'
import { batchOf, busy, importOptions, open, plantsOf, tally } from '../../../helpers/remote-bulk.js'

describe('limits', () => {
  test('an import that is told to stop begins nothing more, and settles what is on its way', async () => {
    const controller = new AbortController()
    const service = await PlantService.listen({
      deed: ({ index }) => void (index === 100 && controller.abort(new Error('stopped'))),
    })
    const batch = batchOf(plantsOf(1000))
    await (await open(service.url, { opening: { concurrency: 8 } })).createMany(
      batch,
      importOptions({ stop: controller.signal }),
    )
    const { created = 0, pending = 0 } = tally(batch)
    expect({ made: service.made.size, posts: service.posts.length, all: created + pending }).toEqual({
      made: created,
      posts: created,
      all: 1000,
    })
    expect(created).toBeGreaterThan(100)
    expect(created).toBeLessThanOrEqual(101 + 8)
  })

  test('an import that is told to stop does not send again', async () => {
    const controller = new AbortController()
    const deed = () => {
      controller.abort(new Error('stopped'))
      return busy
    }
    const service = await PlantService.listen({ deed })
    const batch = batchOf(plantsOf(10))
    await (await open(service.url, { opening: { concurrency: 4 } })).createMany(
      batch,
      importOptions({ stop: controller.signal }),
    )
    expect({ tally: tally(batch), isFew: service.posts.length <= 4 }).toEqual({ tally: { pending: 10 }, isFew: true })
  })

  test('an import that is told to stop while the service does not answer ends without an error of the service', async () => {
    const controller = new AbortController()
    const deed = ({ index }: { index: number }): Deed => {
      if (index === 4) controller.abort(new Error('stopped')) // sent alone, after the first ones have timed out
      return 'hang'
    }
    const service = await PlantService.listen({ deed, isKeyed: true })
    const batch = batchOf(plantsOf(10))
    const store = await open(service.url, { opening: { concurrency: 4, timeout: 300 } })
    await store.createMany(batch, importOptions({ stop: controller.signal, keyOf: (row) => `import-${row}` }))
    expect({ tally: tally(batch), posts: service.posts.length }).toEqual({ tally: { pending: 10 }, posts: 5 })
  })

  test('no more connections and requests at once than the ceiling, and as many', async () => {
    let isFull = () => {}
    const full = new Promise<void>((resolve) => {
      isFull = resolve
    })
    const deed = async ({ index }: { index: number }): Promise<Deed> => {
      if (index === 2) isFull()
      await (index < 3 ? full : new Promise(setImmediate))
      return undefined
    }
    const service = await PlantService.listen({ deed })
    const batch = batchOf(plantsOf(1000))
    await (await open(service.url, { opening: { concurrency: 3 } })).createMany(batch, importOptions())
    const { mostConnections, mostUnderWay } = service
    expect({ tally: tally(batch), mostConnections, mostUnderWay }).toEqual({
      tally: { created: 1000 },
      mostConnections: 3,
      mostUnderWay: 3,
    })
  })
})
