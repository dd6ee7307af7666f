import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runPlants } from '../../helpers/sandbox/run.js'
import { parseObjects } from '../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { buildResponse } from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'

// A port that speaks TLS, to which plain HTTP is sent. It has not understood the request, so nothing
// was stored. A port that only closes the connection is not recognized.

const answer = (text: string) => (socket: Socket) => void socket.end(buildResponse(400, text))

test.each([
  { server: 'Caddy', respond: answer('Client sent an HTTP request to an HTTPS server.\n') },
  { server: 'nginx', respond: answer('<p>The plain HTTP request was sent to HTTPS port</p>') },
  { server: 'Apache', respond: answer("You're speaking plain HTTP to an SSL-enabled server port") },
  { server: 'Tomcat', respond: answer('This combination of host and port requires TLS.') },
])('a create at a port that speaks TLS ends with exit code 4: $server', async ({ respond }) => {
  const url = await listen(respond)
  const { code, err } = await run(url, 'create --id 1 --name Fern -o json')
  expect(code).toBe(4)
  expect(parseObjects(err)).toEqual([
    { error: 503, message: describePort(url), hint, kind: 'accessDenied' },
  ])
})

const hint = 'Begin the address with https://'

describe('a port that answers plain HTTP with a TLS alert', () => {
  const unexpectedMessage = Buffer.from([0x15, 0x03, 0x03, 0, 2, 2, 10])
  const respond = (socket: Socket) => void socket.end(unexpectedMessage)

  test.each([
    'create --id 1 --name Fern',
    'update 1 --name Moss',
    'delete 1 2 --yes',
    'list',
    'count',
    'get 1',
    'export -o csv',
  ])('ends plants %s with exit code 4 and one error', async (line) => {
    const url = await listen(respond)
    const err = `plants: ${describePort(url)}\n  ${hint}\n`
    expect(await run(url, line)).toEqual({ code: 4, out: '', err })
  })

  test('ends an import', async () => {
    const url = await listen(respond)
    const file = join(createTemporaryFolder(), 'plants.csv')
    writeFileSync(file, 'id,name\n1,Fern\n2,Moss\n')
    const { code, out, err } = await run(url, `import ${file}`)
    expect([code, out]).toEqual([4, ''])
    expect(err).toContain(`plants: ${describePort(url)}\n  ${hint}`)
  })

  test('is a failed check of doctor', async () => {
    const url = await listen(respond)
    const { out } = await run(url, 'doctor')
    expect(parseObjects(out)).toContainEqual(expect.objectContaining({ hint }))
  })
})

/** Responds to the first bytes of each connection. */
async function listen(respond: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => respond(socket))
  })
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}` // as it listens on a port
}

function run(url: string, line: string) {
  const folder = createTemporaryFolder()
  const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR: folder }
  return runPlants([...line.split(' '), '--store', url], { env })
}

function describePort(url: string): string {
  return `Could not reach ${url}: its port speaks TLS, not plain HTTP`
}
