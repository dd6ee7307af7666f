import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { requestServer } from '../../helpers/postgres/database.js'
import { createTemplate } from '../../helpers/postgres/server.js'
import { createClock } from '../../helpers/sandbox/clock.js'
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

test('a wait fails at its limit while the clock of the program stands still', async () => {
  createClock({ isStill: true })
  const wait = waitFor(new Promise(() => undefined), () => 'the answer', 1)
  await expect(wait).rejects.toThrow('Not within 0.001 s: the answer')
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

test.skipIf(isWindows)('a wait for initdb ends it, and names it (needs sh)', async () => {
  const folder = createTemporaryFolder()
  writeFileSync(join(folder, 'initdb'), '#!/bin/sh\nexec tail -f /dev/null\n', { mode: 0o755 })
  chmodSync(folder, 0o777)
  const template = createTemplate({ name: 'PostgreSQL', bin: folder }, folder, 200)
  await expect(template).rejects.toThrow(/^Not within 0.2 s: the end of .*initdb -D /)
})

test('a wait for the shared server of PostgreSQL names its address', async () => {
  const server = createServer()
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/0`
  await expect(requestServer(url, 200)).rejects.toThrow(`Not within 0.2 s: a response of ${url}`)
})
