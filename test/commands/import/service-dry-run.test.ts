import { expect, test } from 'vitest'
import { createFixedTokenSource } from '../../../src/server/authenticate.js'
import type { AccessLogEntry } from '../../../src/server/log.js'
import type { Right } from '../../../src/stores/tokens.js'
import { buildPlantLine, fillChunk, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { parseObjects } from '../../helpers/sandbox/sandbox.js'
import { openFile } from '../../helpers/sandbox/store.js'
import { createLogTo, serveInProcess, token } from '../../helpers/scripted-server/service.js'

/** Serves plants to a user, and collects the requests. */
async function serveTo(rights: readonly Right[], plants: string) {
  const user = new ImportSandbox()
  await user.import('', plants)
  const requests: AccessLogEntry[] = []
  const { address } = await serveInProcess({
    openStore: (events) => openFile(user.store, events),
    openTokenSource: async () => createFixedTokenSource(token, { name: 'test', rights }),
    log: {
      ...createLogTo(async () => undefined),
      onRequest: (request) => void requests.push(request),
    },
  })
  Object.assign(user.env, { PLANTS_STORE: address, PLANTS_TOKEN: token })
  return { user, requests }
}

const stored =
  buildPlantLine(-(2n ** 63n), 'Rose', 'Pond') +
  buildPlantLine(2, 'Mint') +
  buildPlantLine(2n ** 63n - 1n, 'Sage', 'Herbs')

test.each(['-', '- --by-name'])(
  'a dry run of %s shows what an import would change at a service whose token may read',
  async (args) => {
    const { user, requests } = await serveTo(['read'], stored)
    const list =
      buildPlantLine(-(2n ** 63n), 'Rose', 'North') +
      buildPlantLine(2, 'Mint') +
      buildPlantLine(5, 'Thyme') +
      '{"id":9223372036854775807,"tag":null}\n'
    const command = `import ${args} --if-exists update --dry-run -o ndjson`
    const { out, err } = await user.run(command, { stdin: list })
    expect(err).toBe('')
    expect(out.trim().split('\n')).toEqual([
      '{"change":"update","id":-9223372036854775808,"before":{"id":-9223372036854775808,"name":"Rose","tag":"Pond"},"after":{"id":-9223372036854775808,"name":"Rose","tag":"North"}}',
      '{"change":"create","id":5,"after":{"id":5,"name":"Thyme"}}',
      '{"change":"update","id":9223372036854775807,"before":{"id":9223372036854775807,"name":"Sage","tag":"Herbs"},"after":{"id":9223372036854775807,"name":"Sage"}}',
      '{"dryRun":true,"created":1,"updated":2,"skipped":1,"rejected":0,"unknown":0}',
    ])
    expect(requests.map(({ method }) => method)).not.toContain('POST')
  },
)

test('a dry run rejects what an import would reject at a service whose token may read', async () => {
  const { user } = await serveTo(['read'], stored)
  const list = buildPlantLine(2, 'Mint', 'Herbs') + buildPlantLine(3, 'Thyme')
  const counts = { code: 6, dryRun: true, created: 1, rejected: { 409: 1 } }
  expect(await user.import('- --dry-run', list)).toMatchObject(counts)
})

test('a dry run checks only the input at a service whose token may not read, and says so once', async () => {
  const { user } = await serveTo(['create', 'update'], stored)
  const [mint, unnamed] = [fillChunk(buildPlantLine(2, 'Mint')), '{"id":1,"tag":"Pond"}\n']
  const list = mint + unnamed + buildPlantLine(3, '')
  const command = 'import - --if-exists update --dry-run -o ndjson'
  const { code, out, err } = await user.run(command, { stdin: list })
  expect(code).toBe(0)
  expect(parseObjects(out)).toEqual([
    { change: 'create', id: 2, after: { id: 2, name: 'Mint' } },
    { change: 'create', id: 3, after: { id: 3, name: '' } },
    { dryRun: true, created: 2, updated: 1, skipped: 0, rejected: 0, unknown: 0 },
  ])
  expect(parseObjects(err)).toEqual([{ warning: expect.any(String) }])
})

test.each([
  { list: { first: 1, step: 1, count: 3000 }, updated: 3000, maxRequests: 7 },
  { list: { first: 4000, step: 1, count: 3000 }, updated: undefined, maxRequests: 1 },
  { list: { first: 1, step: 10, count: 300 }, updated: 300, maxRequests: 300 },
])(
  'a dry run of the list $list at a service that has 3000 plants sends at most $maxRequests requests',
  async ({ list, updated, maxRequests }) => {
    const { user, requests } = await serveTo(['read'], buildList('Fern', 1, 1, 3000))
    const lines = buildList('Moss', list.first, list.step, list.count)
    expect(await user.import('- --if-exists update --dry-run', lines)).toMatchObject({
      code: 0,
      ...(updated !== undefined && { updated }),
    })
    expect(requests.length).toBeLessThanOrEqual(maxRequests)
  },
)

function buildList(name: string, first: number, step: number, count: number): string {
  const lines = Array.from({ length: count }, (_, index) =>
    buildPlantLine(first + index * step, name),
  )
  return lines.join('')
}
