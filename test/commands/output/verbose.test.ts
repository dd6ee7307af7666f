import { expect, test } from 'vitest'
import { isWindows, Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { createdResponse, startRecorder } from '../../helpers/sandbox/token-command-sandbox.js'
import {
  buildJsonResponse,
  ScriptedServer,
  startForwardProxy,
} from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'

const busy = buildJsonResponse(503, { error: 503, message: 'Busy' })

/** Creates a plant with --verbose; the address is URL in the lines on stderr. */
async function create(store: string, flags = '', env: Record<string, string> = {}) {
  const line = `create --id 1 --name Fern --verbose --store ${store}${flags}`
  const result = await new Sandbox().run(line, { env: { PLANTS_TOKEN: token, ...env } })
  return { ...result, lines: result.err.replaceAll(store, 'URL').trimEnd().split('\n') }
}

test('--verbose shows a request and its response after the source of the token', async () => {
  const service = await startRecorder()
  const { lines, code, out } = await create(`${service.url}/v1`)
  expect({ code, out, err: '' }).toEqual(toTextResult('{"name":"Fern"}\n'))
  expect(lines).toEqual(['* token from PLANTS_TOKEN', '> POST URL/plants', '< 200, 15 bytes'])
})

test('--verbose names a proxy without its password', async () => {
  const proxy = await startForwardProxy()
  const posts = [buildJsonResponse(400, { error: 400, message: 'No proxy-s3cret' })]
  const service = await ScriptedServer.listen({ posts, host: '0.0.0.0' })
  const env = { HTTP_PROXY: proxy.url.replace('//', '//user:proxy-s3cret@') }
  const { err } = await create(`http://0.0.0.0:${service.port}`, ' --allow-http', env)
  expect(proxy.lines).toHaveLength(1)
  expect(err).not.toContain(Buffer.from('user:proxy-s3cret').toString('base64'))
  expect(err).toContain(`\n* proxy ${new URL(proxy.url).host}\n`)
  expect(err).toContain('No ***')
})

test('--verbose shows each retry in order, among the warnings', async () => {
  const hangUp = (socket: { destroy(): unknown }) => void socket.destroy()
  const parameters = [{ in: 'header', name: 'Idempotency-Key' }]
  const openapi = buildJsonResponse(200, { paths: { '/plants': { post: { parameters } } } })
  const service = await ScriptedServer.listen({
    posts: [busy, busy, hangUp, createdResponse],
    openapi,
  })
  const { code, lines } = await create(service.url)
  const kinds = lines.flatMap(
    (line) => /^(> .*|< \d+|plants: URL answered 503: Busy)/.exec(line)?.[0] ?? [],
  )
  const [post, get] = ['> POST URL/plants', '> GET URL/openapi.json']
  expect([code, kinds]).toEqual([
    0,
    [
      ...[
        post,
        '< 503',
        'plants: URL answered 503: Busy',
        post,
        '< 503',
        post,
        get,
        '< 200',
        post,
        '< 200',
      ],
    ],
  ])
  expect(new Set(service.keys).size).toBe(1)
})

test.skipIf(isWindows)(
  '--verbose shows the source of a token, but not the token (needs sh)',
  async () => {
    const service = await startRecorder(buildJsonResponse(400, { error: 422, message: 'No' }))
    const user = new Sandbox()
    const login = `auth login --from-stdin --verbose --store ${service.url}`
    expect((await user.run(login, { stdin: token })).err).toContain('* token from this login\n')
    const command = `cat ${user.home}/${user.write('token.txt', 's3cret-of-command')}`
    await user.run(['stores', 'add', 'team', service.url, '--token-command', command])
    for (const [store, source] of [
      [service.url, user.file],
      ['team', 'the token command of team'],
    ]) {
      const { err } = await user.run(`create --id 1 --name Fern --verbose --store ${store}`)
      expect(err).toContain(`* token from ${source}\n`)
    }
    const sent = service.posts.map(({ headers }) => headers['authorization'])
    expect(sent).toEqual([`Bearer ${token}`, `Bearer ${token}`, 'Bearer s3cret-of-command'])
  },
)
