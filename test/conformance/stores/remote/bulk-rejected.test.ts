import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import type { Deed, Post } from '../../../helpers/plant-service.js'
import { token } from '../../../helpers/remote.js'
import { batchOf, complete, imported, importOptions, tally } from '../../../helpers/remote-bulk.js'

const answer = (error: number, message: string, status = 400): Deed => ({ status, body: { error, message } })
const forPlant = (id: string, deed: Deed) => (post: Post) => (post.id === id ? deed : undefined)

describe('an answer about one plant', () => {
  test.each<[string, Deed, string, number, string]>([
    ['400 with an error of 422', answer(422, 'No ferns'), 'rejected', 422, 'No ferns'],
    ['400 with an unknown error', answer(17, 'No ferns'), 'rejected', 17, 'No ferns'],
    ['413', answer(413, 'Too long', 413), 'rejected', 413, 'Too long'],
    ['422 without an Error', { status: 422 }, 'rejected', 422, 'answered 422'],
    ['400 with an error of 409', answer(409, 'Had that'), 'exists', 409, 'Had that'],
  ])('is recorded, and the others go on: %s', async (_, deed, outcome, error, message) => {
    expect(await imported({ deed: forPlant('5', deed) })).toMatchObject({
      tally: { created: 99, [outcome]: 1 },
      rejections: [[5, error, expect.stringContaining(message)]],
    })
  })

  test('ends an import that stops at a rejected record, when what is on its way is settled', async () => {
    const deed = forPlant('5', { status: 422 })
    const result = await imported({ deed, opening: { concurrency: 4 }, stopsAtReject: true })
    const { rejected, created = 0, pending = 0 } = result.tally
    expect([rejected, created + pending, result.made.size]).toEqual([1, 99, created])
    expect(created).toBeLessThan(5 + 4)
  })

  test('with another plant causes one warning', async () => {
    const warnings: string[] = []
    const access = { notify: async (text: string) => void warnings.push(text) }
    const deed = (): Deed => ({ status: 200, body: { name: 'Moss' } })
    const result = await imported({ deed, plants: 3, access, opening: { concurrency: 1 } })
    expect(result.tally).toEqual({ created: 3 })
    const instead = '{"name":"Moss"} instead of {"name":"Fern 0"} for plant 0'
    expect(warnings).toEqual([`The store returns plants that differ from those that were sent, such as ${instead}`])
  })
})

describe('an answer that would be the same for all plants', () => {
  test.each<[string, Deed, object]>([
    ['a redirect', { status: 307, headers: { Location: 'https://a.example' } }, { type: 'unavailable', status: 307 }],
    ['404', { status: 404 }, { type: 'rejected', status: 404 }],
    ['400 with an error of 415', answer(415, 'JSON?'), { type: 'rejected', message: 'JSON?' }],
    ['200 without a plant', { status: 200, body: { ok: true } }, { type: 'unusable', status: 200 }],
    ['401', answer(401, 'Who?', 401), { type: 'unauthorized', message: 'Who?' }],
  ])('ends the import when what is on its way is settled, and the next one goes on: %s', async (_, deed, error) => {
    const at50 = ({ index }: Post) => (index === 50 ? deed : undefined)
    const { store, batch, ...result } = await imported({ deed: at50, opening: { concurrency: 8 }, fails: true })
    const { created = 0, pending = 0 } = result.tally
    expect(result).toMatchObject({ error, rejections: [] })
    expect([result.made.size, created + pending]).toEqual([created, 100])
    expect(result.posts.length).toBeLessThanOrEqual(50 + 8)
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), made: result.made }).toEqual(complete())
  })

  test('leaves its plant unknown without keys', async () => {
    const deed = forPlant('2', { status: 200, body: {} })
    const result = await imported({ isKeyed: false, deed, plants: 5, opening: { concurrency: 1 }, fails: true })
    expect(result.tally).toEqual({ created: 2, unknown: 1, pending: 2 })
  })
})

describe('a token that is rejected during an import', () => {
  const accepts = (next: string) => (post: Post) =>
    post.authorization === `Bearer ${post.index < 50 ? token : next}` ? undefined : answer(401, 'Who?', 401)

  test('is renewed once, and what it was rejected with is sent again', async () => {
    let runs = 0
    const renew = async () => {
      runs += 1
      return 'newer'
    }
    const { store, ...result } = await imported({ deed: accepts('newer'), access: { renew } })
    expect(result).toMatchObject(complete())
    const next = batchOf([{ id: 500n, name: 'Moss' }])
    await store.createMany(next, importOptions({ keyOf: () => 'next' }))
    expect([tally(next), runs]).toEqual([{ created: 1 }, 1])
  })

  test.each<[string, () => Promise<string | undefined>, string]>([
    ['the new one is rejected as well', async () => `other-${Math.random()}`, 'Who?'],
    ['the new one is the old one', async () => token, 'Who?'],
    ['there is no new one', async () => undefined, 'Who?'],
    [
      'getting a new one fails',
      () => Promise.reject(new PlantsError('unauthorized', 'The safe is locked')),
      'The safe is locked',
    ],
  ])('ends the import when %s', async (_, renew, message) => {
    const result = await imported({ deed: accepts('never'), access: { renew }, fails: true })
    const error = { type: 'unauthorized', message }
    expect(result).toMatchObject({ error, tally: { created: 50, pending: 50 } })
  })
})
