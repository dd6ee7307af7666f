import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { isWindows } from '../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { openTerminal } from '../../helpers/sandbox/terminal.js'
import { waitFor } from '../../helpers/sandbox/wait.js'
import { connectTo } from '../../helpers/scripted-server/raw-http.js'

// A test that waits for what never comes must say so, and must not hang.

test('a wait fails at its limit with what was there instead', async () => {
  const wait = waitFor(new Promise(() => undefined), () => 'the answer; there was: a question', 1)
  await expect(wait).rejects.toThrow('Not within 0.001 s: the answer; there was: a question')
})

test('a wait gives the value of its event, and its error', async () => {
  expect(await waitFor(Promise.resolve(5), () => 'a number')).toBe(5)
  const failed = waitFor(Promise.reject(new Error('The program ended')), () => 'a number')
  await expect(failed).rejects.toThrow('The program ended')
})

test.skipIf(isWindows)('a wait for a terminal shows its screen (needs cat)', async () => {
  const terminal = openTerminal('cat', [], createTemporaryFolder(), {}, { limitMs: 200 })
  terminal.type('a question')
  await terminal.waitForText('a question')
  const shown = /^Not within 0.2 s: the text "an answer".*a question/s
  await expect(terminal.waitForText('an answer')).rejects.toThrow(shown)
  await expect(terminal.ended).rejects.toThrow(/^Not within 0.2 s: the end of cat.*a question/s)
})

test('a wait for a response shows what has come of it', async () => {
  const server = createServer((socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-'))
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('It listens on a port')
  const connection = await connectTo({ port: address.port, host: '127.0.0.1' })
  const response = connection.readResponse({ limitMs: 200 })
  await expect(response).rejects.toThrow(/^Not within 0.2 s: a whole response.*Content-$/s)
})
