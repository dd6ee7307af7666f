import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { startOwnServer } from '../../helpers/postgres/database.js'
import {
  type Certificate,
  createCertificate,
  hasOpenssl,
} from '../../helpers/sandbox/certificates.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createdResponse, posts, token } from '../../helpers/sandbox/token-command-sandbox.js'
import { buildJsonResponse, ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'

const linuxBundle = '/etc/ssl/certs/ca-certificates.crt'
/** A mount that only one process sees can add a certificate to those of the system. */
const canMount = spawnSync('unshare', ['--mount', 'test', '-f', linuxBundle]).status === 0
const names = ['DNS:localhost', 'IP:127.0.0.1']

/** A way to trust an authority: what it adds to a command. */
interface Trust {
  args?: string[]
  env?: Record<string, string>
  /** What the command is run under. */
  under?: string[]
}

const ways: Record<string, (authority: Certificate, sandbox: Sandbox) => Trust> = {
  'those of the system (needs root on Linux)': (authority, sandbox) => {
    sandbox.write('bundle.pem', readFileSync(linuxBundle, 'utf8') + authority.cert)
    const script = `mount --bind bundle.pem ${linuxBundle} && exec "$@"`
    return { under: ['unshare', '--mount', 'sh', '-c', script, 'sh'] }
  },
  'the bundle that SSL_CERT_FILE names': ({ path }) => ({ env: { SSL_CERT_FILE: path } }),
  'the file that NODE_EXTRA_CA_CERTS names': ({ path }) => ({
    env: { NODE_EXTRA_CA_CERTS: path },
  }),
  '--ca-cert': ({ path }) => ({ args: ['--ca-cert', path] }),
  'none of these, and is rejected': () => ({}),
}

const rows = Object.entries(ways).map(([name, find]) => ({
  name,
  find,
  isTrusted: !name.startsWith('none'),
  canRun: hasOpenssl && (canMount || !name.startsWith('those of the system')),
}))

const untrusted = expect.stringMatching(/unable to verify the first certificate/)

describe('the authority of a certificate is found in', () => {
  test.for(rows)('$name, for a service (needs openssl)', async (row, { skip }) => {
    skip(!row.canRun)
    const { sandbox, authority, tls } = makeAuthority()
    const service = await ScriptedServer.listen({ posts, tls })
    const args = `create --id 1 --name Fern --store https://localhost:${service.port}`
    const result = await runTrusting(sandbox, args, row.find(authority, sandbox), {
      PLANTS_TOKEN: token,
    })
    expect(service.lines).toEqual(row.isTrusted ? ['POST /plants'] : [])
    if (row.isTrusted) expect(result).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
    else expect(result).toEqual({ code: 4, out: '', err: untrusted })
  })

  test.for(rows)(
    '$name, for a database with verify-full (needs openssl)',
    async (row, { skip }) => {
      skip(!row.canRun)
      const { sandbox, authority, tls } = makeAuthority()
      const { port, env } = await startOwnServer({ tls })
      const address = `postgres://plants@localhost:${port}/plants?sslmode=verify-full`
      const trust = row.find(authority, sandbox)
      const result = await runTrusting(sandbox, `count --store ${address}`, trust, env)
      if (row.isTrusted) expect(result).toEqual({ code: 0, out: '0\n', err: '' })
      else expect(result).toEqual({ code: 4, out: '', err: untrusted })
    },
  )
})

test.runIf(hasOpenssl)(
  'a trusted bundle does not accept the certificate of another name (needs openssl)',
  async () => {
    const { sandbox, authority } = makeAuthority()
    const tls = createCertificate({ names: ['DNS:plants.example.com'], issuer: authority })
    const service = await ScriptedServer.listen({ posts: [createdResponse], tls })
    const args = `create --id 1 --name Fern --store https://localhost:${service.port}`
    const trust = { env: { SSL_CERT_FILE: authority.path } }
    const { code } = await runTrusting(sandbox, args, trust, { PLANTS_TOKEN: token })
    expect([code, service.lines]).toEqual([4, []])
  },
)

test.runIf(hasOpenssl)(
  'several concurrent requests are each repeated once with the bundle of the system (needs openssl)',
  async () => {
    const { sandbox, authority, tls } = makeAuthority()
    const service = await ScriptedServer.listen({
      posts: [buildJsonResponse(200, { name: 'Fern' })],
      tls,
    })
    sandbox.write('plants.csv', `id,name\n${[1, 2, 3, 4].map((id) => `${id},Fern\n`).join('')}`)
    const args = `import plants.csv -v --store https://localhost:${service.port}`
    const trust = { env: { SSL_CERT_FILE: authority.path } }
    const { code, err } = await runTrusting(sandbox, args, trust, { PLANTS_TOKEN: token })
    expect([code, service.posts.length]).toEqual([0, 4])
    const trials = err.split('\n').filter((line) => line.includes('unknown issuer'))
    // The executable reads the variable itself.
    expect(trials.length).toBeLessThanOrEqual(1)
  },
)

function makeAuthority() {
  const authority = createCertificate({ names: ['DNS:authority'], isAuthority: true })
  return { sandbox: new Sandbox(), authority, tls: createCertificate({ names, issuer: authority }) }
}

function runTrusting(
  sandbox: Sandbox,
  line: string,
  { args = [], env, under = [] }: Trust,
  more: Record<string, string>,
) {
  const all = [...line.split(' '), ...args]
  return sandbox.spawn(all, { env: { ...env, ...more } }, ...under)
}
