import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ErrorKind, PlantsError } from '../../../src/platform/errors.js'
import { constraintHint, problem, rejected } from '../../../src/stores/common/change.js'
import { DatabaseSync } from '../../helpers/database.js'
import { exchange, type RawRequest } from '../../helpers/raw-http.js'
import { lockStore, quick, serve, serveStore } from '../../helpers/service.js'

const fern = { body: '{"id":1,"name":"Fern"}' }
const hint = 'Try it with: plants get 1 --store ./plants.db'

/** The status, the names in the body and the body itself. */
async function failureOf(service: Parameters<typeof exchange>[0], request: RawRequest) {
  const { status, body } = await exchange(service, request)
  return { status, names: Object.keys(JSON.parse(body)), body }
}

test.each<[ErrorKind, status: number]>([
  ['conflict', 400],
  ['constraint', 400],
  ['notFound', 400],
  ['unavailable', 503],
  ['inaccessible', 503],
  ['unknownOutcome', 500],
  ['defect', 500],
])('no hint leaves through the service: %s', async (kind, status) => {
  const writes = [
    async () => [rejected(problem(kind, 'What failed', hint))],
    () => Promise.reject(new PlantsError(kind, 'What failed', { hint })),
  ]
  for (const write of writes) {
    const { body, ...failure } = await failureOf(await serveStore({ ...quick, write }), fern)
    expect(failure).toEqual({ status, names: ['error', 'message'] })
    expect(body).not.toMatch(/hint|Try it|plants get|--store/)
  }
})

test('no hint of a store leaves through the service', async () => {
  const service = await serve(['--timeout', '400ms'])
  expect((await exchange(service, fern)).status).toBe(200)
  const db = new DatabaseSync(join(service.folder, 'data/plants.db'))
  db.exec("CREATE UNIQUE INDEX one_moss ON plants (name) WHERE name = 'Moss'")
  db.exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')")
  db.close()
  const conflict = await failureOf(service, { body: '{"id":1,"name":"Rose"}' })
  const constraint = await failureOf(service, { body: '{"id":3,"name":"Moss"}' })
  const unlock = lockStore(service)
  const away = await failureOf(service, { body: '{"id":4,"name":"Sage"}' })
  unlock()
  const failures = [conflict, constraint, away]
  expect(failures.map(({ status, names }) => ({ status, names }))).toEqual(
    [400, 400, 503].map((status) => ({ status, names: ['error', 'message'] })),
  )
  expect(failures.map(({ body }) => JSON.parse(body).error)).toEqual([409, 422, 503])
  expect(failures.map(({ body }) => body).join('')).not.toContain(constraintHint)
  expect(failures.map(({ body }) => body).join('')).not.toMatch(/--timeout|Choose another id/)
})
