import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { World } from '../../helpers/world.js'

const token = { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }

/** Starts a service, which stops as soon as it has begun. */
async function serve(world: World, args: string[], env: Record<string, string> = token) {
  const { err, ...result } = await world.run(['serve', '--output', 'json', ...args], {
    env,
    signal: AbortSignal.abort(),
  })
  return { ...result, err: JSON.parse(err.trimEnd().split('\n').at(-1) ?? '') }
}

describe('a service does not start', () => {
  test.each([[['--port']], [['--port', '0', '--admin-port']]])('at a port that is taken: %j', async (args) => {
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo // as it listens at one
    const err = {
      error: 503,
      message: `Port ${port} of 127.0.0.1 is in use by another program`,
      hint: `Give another with ${args.at(-1)}, or 0 for any free port`,
      retryable: true,
    }
    expect(await serve(new World(), [...args, `${port}`])).toEqual({ code: 4, out: '', err })
  })

  test.each(['x'.repeat(120), 'none/socket'])('at a socket that cannot be there: %s', async (name) => {
    const world = new World()
    const path = join(world.home, name)
    const err = { error: 400, message: expect.stringContaining(dirname(path)) }
    expect(await serve(world, ['--socket', path])).toMatchObject({ code: 2, out: '', err })
  })

  test('in the place of a file', async () => {
    const world = new World()
    world.write('file', 'precious')
    expect((await serve(world, ['--socket', join(world.home, 'file')])).code).toBe(2)
    expect(world.read('file')).toBe('precious')
  })

  test('without a valid token, and without a terminal', async () => {
    const world = new World()
    await world.run('create --id 1 --name Fern')
    const err = {
      error: 401,
      message: `${world.store} has no valid token, so no client could use the service`,
      hint: 'Create one with: plants tokens create. Or set PLANTS_SERVE_TOKEN, or add --token-file PATH',
    }
    expect(await serve(world, ['--port', '0'], {})).toEqual({ code: 3, out: '', err })
  })

  test.runIf(hasOpenssl)('without the key of its certificate (needs openssl)', async () => {
    const [one, two] = [certificate({ names: ['DNS:one'] }), certificate({ names: ['DNS:two'] })]
    const keyOf = ({ path }: { path: string }) => path.replace('cert.pem', 'key.pem')
    for (const key of [[], ['--tls-key', keyOf(two)], ['--tls-key', '/nonexistent/key.pem']])
      expect((await serve(new World(), ['--port', '0', '--tls-cert', one.path, ...key])).code).toBe(2)
    expect((await serve(new World(), ['--port', '0', '--tls-cert', one.path, '--tls-key', keyOf(one)])).code).toBe(0)
  })
})

test('the address is JSON for --output json', async () => {
  const { code, out } = await serve(new World(), ['--port', '0'])
  const address = expect.stringMatching(/^http:\/\/127\.0\.0\.1:[1-9]\d+$/)
  expect({ code, out: JSON.parse(out) }).toEqual({ code: 0, out: { address } })
})
