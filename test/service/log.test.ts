import { expect, test } from 'vitest'
import { parseObjects } from '../helpers/sandbox/sandbox.js'
import { exchangeOnce } from '../helpers/scripted-server/raw-http.js'
import { quickStore, serveStore, testToken } from '../helpers/scripted-server/service.js'

test('the log has the path of a route, the id of a plant that changes, and nothing else of a request', async () => {
  const plant = { id: 9_007_199_254_740_993n, name: 'SECRET' }
  const service = await serveStore({
    ...{ ...quickStore, get: async () => new Map([[plant.id, plant]]) },
    write: async ([change]) => [{ type: change?.type === 'delete' ? 'deleted' : 'updated', plant }],
  })
  const target = `/plants/${plant.id}`
  const id = String(plant.id)
  const [body, path] = ['{"name":"SECRET"}', '/plants/{id}']
  const requests: [object, ...logged: (string | undefined)[]][] = [
    [{ method: 'PATCH', target, body }, 'updated', id, path],
    [{ method: 'PATCH', target, body: '{"name":1}' }, '422', id, path],
    [{ method: 'DELETE', target }, 'deleted', id, path],
    [{ method: 'DELETE', target: '/plants/SECRET' }, '400', undefined, path],
    [{ method: 'GET', target: `${target}?SECRET` }, 'read', undefined, path],
    ...[`${target}/`, `/x/${testToken}`, '/plants%3Fsearch=SECRET', `/${target}`].map(
      (other): [object, string] => [{ method: 'GET', target: other }, '404'],
    ),
  ]
  for (const [request] of requests) await exchangeOnce(service, request)
  const found = parseObjects(service.log()).filter(({ outcome }) => outcome !== undefined)
  expect(found.map(({ outcome, plantId, path }) => [outcome, plantId, path])).toEqual(
    requests.map(([, ...expected]) => [...expected, undefined, undefined].slice(0, 3)),
  )
  expect(service.log()).not.toContain('SECRET')
})
