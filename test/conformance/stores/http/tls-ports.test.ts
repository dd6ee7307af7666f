import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createSecureServer } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type Certificate,
  createCertificate,
  hasOpenssl,
} from '../../../helpers/sandbox/certificates.js'
import { runPlants } from '../../../helpers/sandbox/run.js'
import { parseObjects } from '../../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../../helpers/sandbox/temporary-folder.js'
import { buildResponse, ScriptedServer } from '../../../helpers/scripted-server/scripted-server.js'
import { token } from '../../../helpers/scripted-server/service.js'
import { createAt, createIn } from './steps.js'

// A port that speaks TLS, to which plain HTTP is sent.

/** What a port that speaks TLS does when it is sent plain HTTP. */
const answersOfTlsPorts = {
  'as Caddy, nginx and Apache, answers 400 with a text': (socket: Socket) =>
    socket.end(buildResponse(400, 'HTTP request to an HTTPS server')),
  'answers with an alert': (socket: Socket) =>
    socket.end(Buffer.from([0x15, 0x03, 0x03, 0, 2, 2, 10])), // unexpected_message
  'as OpenSSL, closes the connection': (socket: Socket) => socket.destroy(),
}

/** @param tls without a certificate, each handshake ends with an alert */
async function listenWithTls(
  answerPlainHttp: (socket: Socket) => void,
  tls: Partial<Certificate> = {},
): Promise<string> {
  const secure = createSecureServer(tls).on('tlsClientError', () => undefined)
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (chunk: Buffer) => {
      if (chunk[0] !== 0x16) return void answerPlainHttp(socket)
      socket.pause().unshift(chunk)
      secure.emit('connection', socket)
    })
  })
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}` // as it listens on a port
}

describe.each(Object.entries(answersOfTlsPorts))(
  'plain HTTP to a port with TLS, which %s,',
  (_, answerPlainHttp) => {
    const isClosed = answerPlainHttp === answersOfTlsPorts['as OpenSSL, closes the connection']

    test.for<[string, boolean]>([
      ['has a certificate (needs openssl)', hasOpenssl],
      ['rejects each handshake with an alert', true],
    ])(
      'fails a create and an update with a hint, if the port %s',
      async ([what, canRun], { skip }) => {
        skip(!canRun)
        const tls = what.startsWith('has') ? createCertificate({ names: ['IP:127.0.0.1'] }) : {}
        const host = await listenWithTls(answerPlainHttp, tls)
        const message = `The port of http://${host} speaks TLS, not plain HTTP`
        const hint = `Try https://${host}`
        const create = await createIn(`http://${host}`)
        const stderr = isClosed
          ? {
              error: 504,
              hint: expect.stringMatching(`^${hint}. Whether plant 1 is stored is unk`),
            }
          : { error: 503, hint }
        expect(create).toMatchObject({ code: isClosed ? 5 : 4, out: '' })
        expect(parseObjects(create.err)).toEqual([{ message, ...stderr }])
        const args = ['update', '1', '--name', 'Moss', '-o', 'json', '--store', `http://${host}`]
        const update = await runPlants(args, { env: { PLANTS_TOKEN: token } })
        const unknown = `${hint}. Whether plant 1 was changed is unknown`
        expect(update.code).toBe(isClosed ? 5 : 4)
        expect(parseObjects(update.err)).toMatchObject([
          { message, hint: isClosed ? unknown : hint },
        ])
      },
    )

    test('fails each command that reads, with the same hint', async () => {
      const host = await listenWithTls(answerPlainHttp)
      const hint = `Try https://${host}`
      const err = `plants: The port of http://${host} speaks TLS, not plain HTTP\n  ${hint}\n`
      const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR: createTemporaryFolder() }
      for (const command of ['list', 'count', 'get 1', 'export -o csv']) {
        const args = [...command.split(' '), '--store', `http://${host}`]
        expect(await runPlants(args, { env })).toEqual({ code: 4, out: '', err })
      }
      const doctor = await runPlants(['doctor', '--store', `http://${host}`], { env })
      expect(parseObjects(doctor.out)).toContainEqual(expect.objectContaining({ hint }))
    })

    test('fails two deletions with one error', async () => {
      const host = await listenWithTls(answerPlainHttp)
      const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR: createTemporaryFolder() }
      const args = ['delete', '1', '2', '--yes', '--store', `http://${host}`]
      const { code, err } = await runPlants(args, { env })
      expect(code).toBe(isClosed ? 5 : 4)
      expect(err.match(/speaks TLS, not plain HTTP/g)).toHaveLength(1)
    })

    test('ends an import, with the same hint', async () => {
      const host = await listenWithTls(answerPlainHttp)
      const [folder, state] = [createTemporaryFolder(), createTemporaryFolder()]
      const file = join(folder, 'plants.csv')
      writeFileSync(file, 'id,name\n1,Fern\n2,Moss\n')
      const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR: folder, PLANTS_STATE_DIR: state }
      const { code, out, err } = await runPlants(['import', file, '--store', `http://${host}`], {
        env,
      })
      expect([code, out]).toEqual([isClosed ? 5 : 4, ''])
      const message = `plants: The port of http://${host} speaks TLS, not plain HTTP`
      expect(err.split('\n').slice(0, 2)).toEqual([
        message,
        expect.stringMatching(`^  Try https://${host}`),
      ])
    })
  },
)

test('the error for a port that closes connections does not mention TLS if the port has none', async () => {
  const close = (socket: Socket) => void socket.destroy()
  const service = await ScriptedServer.listen({ posts: [close] })
  const { code, stderr } = await createAt(service, ['--retry', '0'])
  expect(code).toBe(5)
  expect(JSON.stringify(stderr)).not.toContain('TLS')
})
