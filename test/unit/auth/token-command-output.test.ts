import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { failed, found, sh, Team } from '../../helpers/team.js'

const mustPrint = 'Try it in a shell: it must print a token, or {"token":"…","expires":"…"}, and nothing else on stdout'
const notOne =
  'printed text that contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='
const later = '2999-12-31T23:59:59.000Z'

describe('a token command that prints', () => {
  test.each<[string, string, Record<string, unknown>]>([
    ['a token', 's3cret-A.b_c~d+e/f==', { token: 's3cret-A.b_c~d+e/f==' }],
    ['a token and a line feed', 's3cret\n', { token: 's3cret' }],
    ['a token and CR LF', 's3cret\r\n', { token: 's3cret' }],
    ['a token between blanks', '\n\n \ts3cret \r\n\n', { token: 's3cret' }],
    ['a token behind a byte order mark', '\ufeffs3cret\n', { token: 's3cret' }],
    ['the longest token', 's3cret'.padEnd(4096, 'x'), { token: 's3cret'.padEnd(4096, 'x') }],
    ['JSON', '{"token":"s3cret"}', { token: 's3cret' }],
    ['JSON behind a byte order mark', '\ufeff{"token":"s3cret"}\r\n', { token: 's3cret' }],
    ['JSON on several lines', '\r\n{\r\n  "token": "s3cret",\r\n  "type": "Bearer"\r\n}\r\n', { token: 's3cret' }],
    ['JSON without a time', '{"token":"s3cret","expires":null}', { token: 's3cret' }],
    ['JSON with a time', `{"expires":"${later}","token":"s3cret"}`, { token: 's3cret', expires: later }],
    [
      'JSON with a time elsewhere',
      '{"token":"s3cret","expires":"2999-12-31t23:59:59.5+02:00"}',
      { token: 's3cret', expires: later },
    ],
  ])('%s gives it', async (_, text, fields) => {
    const team = new Team()
    writeFileSync(join(team.folder, 'printed'), text)
    const { code, out, err } = await team.takes(`cat ${team.folder}/printed`).token()
    const { expires, ...rest } = fields
    expect({ code, ...JSON.parse(out), err }).toEqual({
      ...{ code: 0, source: 'command', err: '', ...rest },
      ...(expires === undefined ? {} : { expires: expect.stringMatching(/^2999-12-31T(23:59:59|21:59:59)/) }),
    })
  })

  test.each<[string, string, string, string]>([
    ['nothing', '', 'printed nothing', mustPrint],
    ['blanks', ' \r\n', 'printed nothing', mustPrint],
    ['two lines', 's3cret\ns3cret\n', notOne, mustPrint],
    ['a header', 'Bearer s3cret', notOne, mustPrint],
    ['a text with accents', 's3cr\u00e9t-s3cret', notOne, mustPrint],
    ['U+0000', 's3cret\0', notOne, mustPrint],
    ['a header of its own', 's3cret\r\nX-Other: s3cret', notOne, mustPrint],
    ['a longer token', 's3cret'.padEnd(4097, 'x'), 'printed text that is longer than 4096 characters', mustPrint],
    ['a text', '"s3cret"', notOne, mustPrint],
    ['an array', '["s3cret"]', notOne, mustPrint],
    ['broken JSON', '{"token":"s3cret"', 'printed invalid JSON', mustPrint],
    ['JSON and more', '{"token":"s3cret"}\n{"token":"s3cret"}', 'printed invalid JSON', mustPrint],
    ['JSON without a token', '{"access_token":"s3cret"}', 'printed JSON without a token', mustPrint],
    ['JSON with a token that is no text', '{"token":["s3cret"]}', 'printed JSON without a token', mustPrint],
    ['JSON with an empty token', '{"token":""}', 'printed nothing', mustPrint],
    ['JSON with two tokens', '{"token":"s3cret s3cret"}', notOne, mustPrint],
    ['JSON with a line break in its token', '{"token":"s3cret\\r\\nX: s3cret"}', notOne, mustPrint],
    ...[
      'soon',
      '',
      '2999-12-31',
      '2999-13-31T23:59:59Z',
      '2999-12-31T23:59:59',
      '2020-01-01 00:00 (s3cret)',
      's3cret',
    ].map((time): [string, string, string, string] => [
      `JSON with the time ${JSON.stringify(time)}`,
      JSON.stringify({ token: 's3cret', expires: time }),
      'printed an invalid "expires"',
      'It must be a time such as 2026-01-02T03:04:05Z',
    ]),
    [
      'JSON with a time that is a number',
      '{"token":"s3cret","expires":1893456000}',
      'printed an invalid "expires"',
      'It must be a time such as 2026-01-02T03:04:05Z',
    ],
    [
      'a token that has expired',
      '{"token":"s3cret","expires":"2020-01-02T03:04:05Z"}',
      'printed a token that expired on 2020-01-02T03:04:05.000Z',
      'Renew the token where the command reads it',
    ],
  ])('%s gives no token, and it is not repeated', async (_, text, why, hint) => {
    const team = new Team()
    writeFileSync(join(team.folder, 'printed'), text)
    expect(await team.takes(`cat ${team.folder}/printed`).token()).toEqual(failed('cat', why, hint))
  })

  test('10 MB is stopped early', async () => {
    const team = new Team()
    const program = team.program('much', sh(`head -c 10000000 /dev/zero | tr '\\0' x; echo done > ${team.folder}/done`))
    expect(await team.takes(program).token()).toEqual(failed(program, 'printed more than 64 KiB', mustPrint))
    expect(team.noted('done')).toBe('')
  })

  test('without an end is stopped', async () => {
    const team = new Team()
    expect(await team.takes('yes s3cret').token()).toEqual(failed('yes', 'printed more than 64 KiB', mustPrint))
  })

  test('exactly 64 KiB around a token gives it', async () => {
    const team = new Team()
    writeFileSync(join(team.folder, 'printed'), 's3cret'.padEnd(65_536, '\n'))
    expect(await team.takes(`cat ${team.folder}/printed`).token()).toEqual(
      found({ token: 's3cret', source: 'command' }),
    )
  })
})
