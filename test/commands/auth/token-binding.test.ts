import { describe, expect, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'
import {
  acceptingResponse,
  buildSavedTokens,
  createdResponse,
  fern,
  startRecorder,
  token,
} from '../../helpers/sandbox/token-command-sandbox.js'
import { ScriptedServer, startForwardProxy } from '../../helpers/scripted-server/scripted-server.js'

/** A user who sends tokens; both functions return the exit code. */
class Sender extends Sandbox {
  async login(store: string): Promise<number> {
    return (await this.run(`auth login --from-stdin --store ${store}`, { stdin: token })).code
  }

  async createAt(store: string, env: Record<string, string> = {}): Promise<number> {
    return (await this.run(`${fern} ${store}`, { env })).code
  }
}

function tokensIn(...servers: ScriptedServer[]): string[][] {
  return servers.map(({ bytes }) => bytes.toString('latin1').match(/s3cret[\w-]*/g) ?? [])
}

describe('a saved token', () => {
  test('is sent to no other address', async () => {
    const [service, other] = [await startRecorder(), await startRecorder()]
    const { port, url } = service
    const user = new Sender({ tokens: buildSavedTokens(`${url}/v1`) })
    const paths = ' /v1/x /V1 /v11 /v1/../v2 /%76%31 /v1%2f //v1'.split(' ')
    const hosts = ['localhost', '127.0.0.2', '[::ffff:127.0.0.1]']
    for (const address of [
      ...paths.map((path) => `${url}${path}`),
      ...hosts.map((host) => `http://${host}:${port}/v1`),
      ...[`${other.url}/v1`, `https://127.0.0.1:${port}/v1`],
    ])
      for (const line of [fern, 'auth status --store', 'auth token --store']) {
        const { code, out } = await user.run(`${line} ${address}`)
        expect([line, address, code, out.includes(token)]).toEqual([line, address, 3, false])
      }
    expect([service, other].map((server) => server.connections)).toEqual([0, 0])
  })

  test.runIf(hasOpenssl)('is not seen by a proxy on the way (needs openssl)', async () => {
    const tls = createCertificate({ names: ['DNS:plants.example.com'] })
    const service = await ScriptedServer.listen({
      posts: [acceptingResponse, createdResponse],
      tls,
    })
    const proxy = await startForwardProxy({ to: service.port })
    const user = new Sender()
    const env = { HTTPS_PROXY: proxy.url.replace('//', '//me:hunter2@') }
    const store = `https://plants.example.com --ca-cert ${tls.path}`
    const login = `auth login --from-stdin --output json --store ${store}`
    const { out } = await user.run(login, { stdin: token, env })
    expect(JSON.parse(out)).toMatchObject({ checked: true })
    expect(await user.createAt(store, env)).toBe(0)
    expect(tokensIn(service, proxy)).toEqual([[token, token], []])
    expect(proxy.lines).toEqual(Array(2).fill('CONNECT plants.example.com:443'))
    expect(proxy.bytes.toString('latin1')).not.toMatch(/bearer/i)
  })
})

describe('the name of a store', () => {
  const codesAt = (user: Sender, ...stores: string[]) =>
    Promise.all(stores.map((store) => user.createAt(store)))

  test('has one token, which belongs to its address', async () => {
    const [service, user] = [await startRecorder(acceptingResponse, createdResponse), new Sender()]
    const address = `${service.url}/v1`
    await user.run(`stores add team ${address}`)
    await user.run(`stores add same ${address}/`)
    expect(await user.login('team')).toBe(0)
    expect(await codesAt(user, 'team', 'same', address, service.url)).toEqual([0, 0, 0, 3])
  })

  test('does not keep its token when its address changes', async () => {
    const [service, other] = [
      await startRecorder(acceptingResponse, createdResponse),
      await startRecorder(),
    ]
    const user = new Sender({ stores: { team: { address: service.url } } })
    expect(await user.login('team')).toBe(0)
    expect((await user.run(`stores add team ${other.url} --replace`)).code).toBe(0)
    expect((await user.run('auth token --store team')).code).toBe(3)
    expect(await codesAt(user, 'team', service.url)).toEqual([3, 0])
    expect(other.connections).toBe(0)
  })

  test.skipIf(isWindows)(
    'has the token of its command, which goes nowhere else (needs sh)',
    async () => {
      const [service, other] = [await startRecorder(), await startRecorder()]
      // prints s3cret-of-command, which must not stand in the settings that a command shows
      const team = { address: service.url, 'token-command': 'printf s%s 3cret-of-command' }
      const stores = { team, same: { address: service.url }, other: { address: other.url } }
      const user = new Sender({ stores })
      expect(await codesAt(user, 'team', 'same', 'other', service.url)).toEqual([0, 3, 3, 3])
      expect(tokensIn(service, other)).toEqual([['s3cret-of-command'], []])
    },
  )
})

test('PLANTS_TOKEN is sent nowhere by a command that needs no service', async () => {
  const [own, here] = [await startRecorder(), await startRecorder()]
  const user = new Sender({
    stores: { own: { address: own.url } },
    tokens: buildSavedTokens(own.url),
  })
  const run = (line: string) =>
    user.run(line, { env: { PLANTS_TOKEN: 's3cret-of-env', PLANTS_STORE: here.url } })
  for (const line of ['auth token', 'auth logout', 'stores list', 'config list', 'stores use own'])
    await run(line)
  const { out } = await run('auth status --output json')
  expect(JSON.parse(out)).toEqual({ store: here.url, address: here.url, source: 'variable' })
  expect([own.connections, here.connections]).toEqual([0, 0])
})

// Sandbox.run itself fails when a secret is shown.
test.each([
  'auth login T',
  'auth token T',
  '--token T list',
  'config set tokens.https://h.example T',
  'stores add new https://h.example/?token=T',
  'tokens create T',
])('an error does not repeat a secret that was given as an argument: plants %s', async (line) => {
  const settings = { version: 1, stores: { team: { address: 'https://h.example' } } }
  const user = new Sender(settings)
  for (const secret of ['s3cretOfSomebody', `plants_${'s3cretXy'.repeat(5)}abc`])
    expect(await user.run(line.replace(/(?<![A-Z_])T(?![A-Z])/, secret))).toMatchObject({
      code: 2,
      out: '',
    })
  expect(user.saved).toEqual(settings)
})
