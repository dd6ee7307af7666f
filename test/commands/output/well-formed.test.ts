import { describe, expect, test } from 'vitest'
import { redact } from '../../../src/platform/escape.js'
import { parseObjects, Sandbox } from '../../helpers/sandbox/sandbox.js'
import { buildSavedTokens, startRecorder } from '../../helpers/sandbox/token-command-sandbox.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { buildJsonResponse } from '../../helpers/scripted-server/scripted-server.js'
import { quickStore, serveStore } from '../../helpers/scripted-server/service.js'

// A message that quotes a text never holds half of a surrogate pair, which most JSON parsers refuse.

/** JSON that is broken at a flower, of which V8's sentence quotes a half. */
const halves = ['["\\🌷"]', '🌷', '{"id":1,"name":"Fern"}🌷']

/** Of lines of JSON, which may escape the half of a pair. */
function expectWellFormed(lines: string) {
  const texts = parseObjects(lines).flatMap((object) => Object.values(object).map(String))
  expect(texts.filter((text) => !text.isWellFormed())).toEqual([])
}

test.each(halves)('an Error of the service is well-formed where the body is %s', async (body) => {
  const service = await serveStore(quickStore)
  for (const [method, target] of [
    ['POST', '/plants'],
    ['PATCH', '/plants/1'],
  ] as const) {
    const answer = await exchangeOnce(service, { method, target, body })
    expect(answer.text).toMatch(/^400 The body is not JSON: /)
    expectWellFormed(answer.body)
  }
})

describe('the command line prints well-formed strings', () => {
  test.each(halves)('for an error where stdin is %s', async (stdin) => {
    const { code, err } = await new Sandbox().run('create - --output json', { stdin })
    expect([code, parseObjects(err)]).toMatchObject([2, [{ error: 400 }]])
    expectWellFormed(err)
  })

  test.each(['ndjson', 'json'])('for an import of %s', async (format) => {
    for (const half of halves) {
      const user = new Sandbox()
      const args = `import - --format ${format} --rejects rejects --output json`
      const { code, err } = await user.run(args, { stdin: `${half}\n` })
      expect([code, err]).toEqual([format === 'json' ? 2 : 6, expect.stringContaining('JSON')])
      expectWellFormed(err)
      if (user.has('rejects')) expectWellFormed(user.read('rejects'))
    }
  })

  test.each([
    ['ends in a half', 'Half a flower: \ud83c'],
    ['is cut within a flower', `x${' '.repeat(998)}🌷 and more`],
  ])('for a response of a service that %s', async (_, message) => {
    const service = await startRecorder(buildJsonResponse(400, { error: 400, message }))
    const user = new Sandbox({ tokens: buildSavedTokens(service.url) })
    const args = ['create', '--id', '1', '--name', 'Fern', '--output', 'json']
    const { code, err } = await user.run([...args, '--store', service.url])
    expect([code, parseObjects(err)]).toMatchObject([1, [{ error: 400 }]])
    expectWellFormed(err)
  })
})

test('a secret with a character of two UTF-16 units is redacted whole, also where a message cuts it', () => {
  const secrets = new Set(['password-🌷-of-a-garden'])
  for (const [text, expected] of [
    ['It was password-🌷-of-a-garden', 'It was ***'],
    ['It was password-🌷-of…', 'It was ***…'],
    ['It was password-🌹', 'It was password-🌹'],
  ] as const) {
    const redacted = redact(text, { secrets })
    expect(redacted.isWellFormed()).toBe(true)
    expect(redacted).toBe(expected)
  }
})
