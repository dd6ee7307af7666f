import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { DatabaseSync } from '../../helpers/database.js'
import { canMount, smallDisk } from '../../helpers/linux.js'
import { exchange } from '../../helpers/raw-http.js'
import { runPlants } from '../../helpers/run.js'
import { placeOf, type RunningService, serve, serveStore, testToken } from '../../helpers/service.js'
import { answerTo, planted } from '../../helpers/service-answers.js'

const fern = '{"id":1,"name":"Fern"}'

describe('503 promises that nothing was stored, and says when to come again:', () => {
  const away = (id: string | undefined) =>
    `The store is not available, and nothing was stored. Ask the operator of the service about request ${id}`

  test('when the store is locked for longer than --timeout', async () => {
    const service = await serve(['--timeout', '400ms'])
    const db = new DatabaseSync(join(service.folder, 'data/plants.db'))
    onTestFinished(() => db.close())
    db.exec('BEGIN IMMEDIATE')
    const answers = await Promise.all([1, 2, 3].map((id) => exchange(service, { body: `{"id":${id},"name":"Fern"}` })))
    db.exec('ROLLBACK')
    expect(answers.map(({ status, headers }) => [status, headers['retry-after']])).toEqual(
      answers.map(() => [503, '1']),
    )
    const messages = answers
      .map(({ headers, body }) => JSON.parse(body).message.replace(headers['request-id'], 'ID'))
      .toSorted()
    expect(messages).toEqual([away('ID'), away('ID'), away('ID')])
    expect(await listOf(service)).toEqual([])
    expect(await answerTo(service, { body: fern })).toEqual(planted)
  })

  test.runIf(canMount)('when the disk is full, until it is not (a tmpfs, needs unshare)', async () => {
    const { folder, owner, inside } = await smallDisk()
    const through = ['nsenter', '-t', `${owner}`, '-U', '-m', '--preserve-credentials']
    const service = await serve(['--store', join(folder, 'plants.db')], { folder, through })
    const { bavail, bsize } = statfsSync(inside)
    writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize))
    const request = { body: `{"id":1,"name":"${'Fern'.repeat(5000)}"}` }
    const { status, headers, body } = await exchange(service, request)
    const message = away(headers['request-id'])
    expect([status, headers['retry-after'], JSON.parse(body)]).toEqual([503, '1', { error: 503, message }])
    rmSync(join(inside, 'filler'))
    expect((await exchange(service, request)).status).toBe(200)
  })
})

describe('500 says nothing of the inside, and names the request:', () => {
  test.each([
    ['a defect', new TypeError('SECRET in /inside'), 'Internal error'],
    [
      'a commit with an unknown outcome',
      new PlantsError('unknownOutcome', 'SECRET in /inside'),
      'Whether the plant is stored is unknown',
    ],
    ['what no store says', new PlantsError('notFound', 'SECRET in /inside'), 'Internal error'],
  ])('%s', async (_, error, words) => {
    const service = await serveStore({ create: () => Promise.reject(error), close: async () => undefined })
    const { status, headers, body } = await exchange(
      { place: placeOf(service.address), token: testToken },
      { body: fern },
    )
    const message = `${words}. Ask the operator of the service about request ${headers['request-id']}`
    expect({ status, body: JSON.parse(body) }).toEqual({ status: 500, body: { error: 500, message } })
    expect(service.log()).toContain('SECRET in /inside')
  })
})

async function listOf({ folder }: RunningService): Promise<string[]> {
  const { code, out } = await runPlants(['list'], { env: { PLANTS_DATA_DIR: join(folder, 'data') } })
  expect(code).toBe(0)
  return out.split('\n').filter((line) => line !== '')
}
