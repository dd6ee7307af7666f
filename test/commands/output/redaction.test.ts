import { describe, expect, test } from 'vitest'
import { redact, redactJson } from '../../../src/platform/escape.js'
import { addDefaults, type RunOptions } from '../../helpers/sandbox/run.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import {
  buildJsonResponse,
  buildResponse,
  type ScriptedResponse,
  ScriptedServer,
} from '../../helpers/scripted-server/scripted-server.js'

// Sandbox.run itself fails when a token is shown: each holds "s3cret" at its beginning and its end.

const short = 's3cret-of-env-s3cret'
/** As long as those of `plants tokens create`: a message shows the beginning of such a text. */
const long = `plants_s3cret-${'0123456789'.repeat(3)}-s3cret`
const savedAt = '2026-01-02T03:04:05.678Z'
const nobody = 'https://127.0.0.1:1'
const create = 'create --id 1 --name x'

/** Runs a command in text and in JSON, with traces, which show the most; returns its stderr. */
async function everyWay(user: Sandbox, args: string | string[], options: RunOptions = {}) {
  const words = [...(typeof args === 'string' ? args.split(' ') : args), '--verbose']
  const text = await user.run(addDefaults({ '--output': 'text' }, words), options)
  const json = await user.run(addDefaults({ '--output': 'json' }, words), options)
  const shown = text.err + json.err
  expect(shown).not.toContain('s3cret')
  return shown
}

test.each([short, long])(
  'the value of PLANTS_TOKEN is redacted where another option has it: %s',
  async (token) => {
    const places: [line: string, options?: RunOptions][] = [
      [`list --store ${token}`],
      [`list --store https://x.example/?token=${token}`],
      [`create --id ${token} --name x`],
      [`create --${token}`],
      [token],
      [`import ${token}`],
      [`stores add ${token}!x https://y.example`],
      [`serve --tls-cert ${token} --tls-key ${token}`],
      [`doctor --store ./${token}/x`],
      ['list', { env: { PLANTS_STORE: token } }],
      ['list', { env: { PLANTS_TIMEOUT: token } }],
      ['auth status', { env: { PLANTS_CONFIG_DIR: token } }],
      [`${create} --store https://x.invalid --timeout 100ms`, { env: { HTTPS_PROXY: token } }],
      ['create', { stdin: `{"id":"${token}","name":"x"}` }],
      ['create', { stdin: `{"${token}` }],
    ]
    for (const [line, options] of places)
      await everyWay(new Sandbox(), line, {
        ...options,
        env: { PLANTS_TOKEN: token, ...options?.env },
      })
  },
)

test.each(['s3cret\ns3cret', 's3cr\u00e9t-s3cret', 's3cret'.padEnd(5000, 's3cret')])(
  'a malformed token is neither shown nor sent: %j',
  async (token) => {
    const env = { PLANTS_TOKEN: token, PLANTS_STORE: nobody }
    for (const [line, code] of [
      [create, 2],
      ['config list', 0],
      ['doctor', 1],
    ] as const) {
      expect({ line, code: (await new Sandbox().run(line, { env })).code }).toEqual({ line, code })
      await everyWay(new Sandbox(), line, { env })
    }
    const user = new Sandbox({ tokens: { [nobody]: { token, savedAt } } })
    for (const line of [create, 'auth status', 'doctor'])
      await everyWay(user, `${line} --store ${nobody}`)
    expect((await user.run(`${create} --store ${nobody}`)).code).toBe(2)
    expect((await user.run('serve --port 0', { env: { PLANTS_SERVE_TOKEN: token } })).code).toBe(2)
  },
)

const proxy = 'http://me:s3cret-of-proxy@127.0.0.1:1'

test.each([proxy, proxy.slice(7), proxy.replace('@', '@@')])(
  'the password of a proxy is redacted in an error: %s',
  async (value) => {
    const env = { HTTPS_PROXY: value, PLANTS_TOKEN: short }
    for (const line of ['doctor', create])
      await everyWay(new Sandbox(), `${line} --store https://x.invalid --timeout 100ms`, { env })
  },
)

/** In characters that an answer may encode. */
const odd = 's3cret-Of/one+address~s3cret=='
const error = (status: number, message: string) =>
  buildJsonResponse(status, { error: status, message })

test.each<[string, ScriptedResponse]>([
  ['in its message of 401', error(401, `Bearer ${odd} is not accepted`)],
  ['in its message, which is cut within it', error(400, `${'x'.repeat(180)}${odd}`)],
  [
    'in a redirect',
    buildResponse(302, '', { Location: `https://example.com/${'x'.repeat(270)}${odd}` }),
  ],
  ['in its status line', `HTTP/1.1 400 ${odd}\r\nContent-Length: 0\r\n\r\n`],
  ['in no HTTP', (socket) => void socket.end(`${odd}\r\n`)],
  ['in an answer that is longer than is read', buildJsonResponse(200, odd.repeat(50_000))],
])('a token that a service repeats is redacted: %s', async (_, answer) => {
  const { url } = await ScriptedServer.listen({ posts: [answer] })
  const team = { address: url, 'token-command': `echo ${odd}` }
  const user = new Sandbox({ tokens: { [url]: { token: odd, savedAt } } })
  for (const line of [create, 'doctor']) {
    const words = `${line} --timeout 300ms --store ${url}`
    await everyWay(user, words)
    await everyWay(new Sandbox(), words, { env: { PLANTS_TOKEN: odd } })
  }
  await everyWay(new Sandbox(), `auth login --from-stdin --timeout 300ms --store ${url}`, {
    stdin: odd,
  })
  const err = await everyWay(
    new Sandbox({ stores: { team } }),
    `${create} --timeout 300ms --store team`,
  )
  expect(err).toContain('token command of team')
})

test.each([
  ['PLANTS_SERVE_TOKEN', 'short', 'serve --port 0', 'is shorter than 16 characters'],
  ['PLANTS_SERVE_TOKEN', 'than', 'serve --port 0', 'is shorter than 16 characters'],
  ['PLANTS_TOKEN', 'a space', `list --store ${nobody}`, 'contains a space or another'],
])('the error for an invalid %s is not garbled where it has the words %j', async (...row) => {
  const [name, token, line, problem] = row
  const { err } = await new Sandbox().run(line, { env: { [name]: token }, mayShowSecrets: true })
  expect(err).toContain(`plants: ${name} ${problem}`)
})

test.each([
  ['postgres://u:password@localhost/db', 'contains a password, which other users could see'],
  ['postgres://u:parameter@localhost/db?x=1', 'contains a parameter that is not supported'],
])('the error for the address %s does not reveal its password', async (address, problem) => {
  const user = new Sandbox()
  const line = problem.includes('users') ? ['list', '--store', address] : ['list']
  const env = { PLANTS_STORE: address }
  expect((await user.run(line, { env, mayShowSecrets: true })).err).toContain(problem)
})

test('a password that is also the name of the database is not redacted in the address', async () => {
  const env = { PLANTS_STORE: 'postgres://ann:garden@127.0.0.1:1/garden' }
  const { err } = await new Sandbox().run('list --timeout 0s', { env, mayShowSecrets: true })
  expect(err).toContain('Could not reach postgres://127.0.0.1:1/garden: ')
})

test('the log of a service shows no token, however it is encoded', async () => {
  const token = 's3cret+of env=s3cret'
  const env = { PLANTS_TOKEN: token, PLANTS_SERVE_TOKEN: 's3cret-to-serve-plants' }
  for (const form of [token, encodeURIComponent(token)])
    for (const terminals of [[], ['stderr' as const]]) {
      const line = ['serve', '--port', '0', '--store', `./${form}.db`]
      const { err } = await new Sandbox().run(line, { env, signal: AbortSignal.abort(), terminals })
      expect(err).toMatch(/Created store .*\/\*\*\*\.db/)
    }
})

describe('redact', () => {
  test('keeps JSON valid, wherever a secret begins and ends in it', () => {
    const secrets = new Set(['plantsapp-1', '"quoted"', 'ends with \\', 'a"b\\c-secret'])
    for (const secret of secrets)
      for (const text of [
        secret,
        `role "${secret.slice(0, 9)}" is`,
        `${secret}"`,
        `"${secret}\\`,
      ]) {
        const line = redactJson(JSON.stringify({ msg: text, 'x"y': [text] }), { secrets })
        const found = JSON.stringify(JSON.parse(line))
        expect(found).not.toContain(JSON.stringify(secret).slice(1, -1))
      }
  })

  test('keeps ordinary words, even if a secret begins with them', () => {
    const token = `plants_c${'Ab3-_x9'.repeat(6)}`
    const secrets = new Set(['password1', 'database-2024', token, 'correcthorsebatterystaple'])
    const text = 'The password of plants_clone, correct, is in the database-server'
    expect(redact(text, { secrets })).toBe(text)
    expect(redact('password1 "plants_cAb3-_x… correcthorsebatt… correcthor...', { secrets })).toBe(
      '*** "***… ***… ***',
    )
  })

  test('keeps a word that contains a secret of letters', () => {
    const secrets = new Set(['short', 'word'])
    const text = 'The password is shorter than "short" and --word=short'
    const redacted = 'The password is shorter than "***" and --***=***'
    expect(redact(text, { secrets })).toBe(redacted)
  })

  test('finds a secret of letters after an escape that ends with a letter', () => {
    const secrets = new Set(['garden'])
    expect(redact('password%3Dgarden, %2fgarden', { secrets })).toBe('password%3D***, %2f***')
    expect(redactJson(JSON.stringify('\ngarden \x1bgarden'), { secrets })).toBe(
      '"\\n*** \\u001b***"',
    )
    expect(redact('a beergarden, ngarden and %0 xgarden', { secrets })).not.toContain('*')
  })

  test('finds a long secret of letters within a longer word', () => {
    const secrets = new Set(['correcthorsebatterystaple'])
    expect(redact('xcorrecthorsebatterystaplex', { secrets })).toBe('x***x')
  })

  test('finds a token of 40 characters in every form, whole and cut, and the longer of two', () => {
    const token = 'Ab3/Cd4+Ef5=Gh6~Ij7.Kl8-Mn9_Op0/Qr1+St2='
    const forms = [
      token,
      encodeURIComponent(token),
      encodeURIComponent(token).replace(/%../g, (encodedByte) => encodedByte.toLowerCase()),
      JSON.stringify(token).slice(1, -1),
      token.replaceAll('/', '\\/'),
    ]
    const cut = forms.map((each) => `${each.slice(0, 16)}…`)
    for (const form of [...forms, ...cut, token.slice(0, 12), `${token}-more`])
      expect(redact(`Bad: ${form}`, { secrets: new Set([token, `${token}-more`]) })).toMatch(
        /^Bad: \*\*\*…?$/,
      )
  })
})
