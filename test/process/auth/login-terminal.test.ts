import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import type { Terminal } from '../../helpers/sandbox/terminal.js'
import { acceptingResponse } from '../../helpers/sandbox/token-command-sandbox.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'

const typed = 'thyme_s3cret-Token~+/='

/** A user whom a login asks for the token of a service. */
async function asked() {
  const user = new Sandbox()
  const { url } = await ScriptedServer.listen({ posts: [acceptingResponse] })
  const typing = user.terminal(`auth login --store ${url}`)
  await typing.waitForText(`token for ${url}`)
  return { typing, url, user }
}

test('login asks for the token without showing it', async () => {
  const { typing, url, user } = await asked()
  typing.type('not a token\r')
  await typing.answer(['contains a space', '\x15'])
  for (const character of typed) typing.type(character)
  typing.type('\r')
  const { code, screen } = await typing.ended
  expect(code).toBe(0)
  expect(stripVTControlCharacters(screen)).toContain(`Saved the token for ${url}`)
  for (const part of [typed.slice(0, 5), 's3cret', 'not a token', '***'])
    expect(screen).not.toContain(part)
  expect(user.saved).toMatchObject({ tokens: { [url]: { token: typed } } })
})

const long = 's3cretOiJSUzI1NiJ9.'.padEnd(2000, 'x')
test.each([
  ['the first line of a paste', `${typed} \r\ns3cret-2\r\n`, typed],
  ['a paste as long as a token may be', `${long}\r`, long],
])('login accepts %s', async (_, paste, token) => {
  const { typing, url, user } = await asked()
  typing.type(paste)
  expect((await typing.ended).code).toBe(0)
  expect(user.saved).toMatchObject({ tokens: { [url]: { token } } })
})

test.each<[string, number, (typing: Terminal) => void]>([
  ['Ctrl-C', 130, (typing) => typing.type('s3cret\x03')],
  ['Escape', 130, (typing) => typing.type('s3cret\x1b')],
  ['SIGTERM', 143, (typing) => typing.kill('SIGTERM')],
])('%s ends login with exit code %i, and nothing is saved', async (_, code, leave) => {
  const { typing, user } = await asked()
  leave(typing)
  expect(await typing.ended).toEqual({ code, screen: expect.not.stringContaining('s3cret') })
  expect(user.saved).toBeUndefined()
})
