import { expect, test } from 'vitest'
import { Team } from '../../helpers/team.js'
import { printed, refusal } from '../../helpers/world.js'

const auth = 'auth token --store team'
const longest = 's3cret'.padEnd(4096, 'x')

/** A user whose token command prints a text. */
function prints(text: string): Team {
  const team = new Team()
  team.write('printed', text)
  return team.takes(`cat ${team.home}/printed`)
}

test.each([
  ['A token', 's3cret-A.b_c~d+e/f==', 's3cret-A.b_c~d+e/f=='],
  ['A token in blanks', '\n\n \ts3cret \r\n\n', 's3cret'],
  ['A token after a byte order mark', '\ufeffs3cret\n', 's3cret'],
  ['The longest token', longest, longest],
  ['64 KiB', 's3cret'.padEnd(65_536, '\n'), 's3cret'],
  ['JSON after a byte order mark', '\ufeff{"token":"s3cret"}\r\n', 's3cret'],
  ['JSON on several lines', '\r\n{\r\n  "token": "s3cret",\r\n  "type": "Bearer"\r\n}\r\n', 's3cret'],
  ['JSON without a time', '{"token":"s3cret","expires":null}', 's3cret'],
])('%s from a token command is taken', async (_, text, token) => {
  expect(await prints(text).run(auth)).toEqual(printed(`${token}\n`))
})

test.each(['2999-12-31T23:59:59.000Z', '2999-12-31t23:59:59+00:00', '3000-01-01T01:59:59.0+02:00'])(
  'a token command can tell that its token expires at %s',
  async (expires) => {
    const { out } = await prints(JSON.stringify({ token: 's3cret', expires })).run(`${auth} --output json`)
    expect(JSON.parse(out)).toEqual({ token: 's3cret', source: 'command', expires: '2999-12-31T23:59:59.000Z' })
  },
)

const failure = (program: string, why: string, hint: string) =>
  refusal(`The token command of team (${program}) ${why}`, hint, 3)
const mustPrint = 'Try it in a shell: it must print a token, or {"token":"…","expires":"…"}, and nothing else on stdout'
const notOne =
  'printed text that contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='

test.each([
  ['blanks', ' \r\n', 'printed nothing'],
  ['two lines', 's3cret\ns3cret\n', notOne],
  ['a header', 'Bearer s3cret', notOne],
  ['a letter with an accent', 's3cr\u00e9t-s3cret', notOne],
  ['U+0000', 's3cret\0', notOne],
  ['too long a token', `${longest}x`, 'printed text that is longer than 4096 characters'],
  ['an array', '["s3cret"]', notOne],
  ['broken JSON', '{"token":"s3cret"', 'printed invalid JSON'],
  ['two objects', '{"token":"s3cret"}\n{"token":"s3cret"}', 'printed invalid JSON'],
  ['JSON without a token', '{"access_token":"s3cret"}', 'printed JSON without a token'],
  ['JSON whose token is an array', '{"token":["s3cret"]}', 'printed JSON without a token'],
  ['JSON with an empty token', '{"token":""}', 'printed nothing'],
  ['JSON with a line break in its token', '{"token":"s3cret\\r\\nX: s3cret"}', notOne],
])('%s from a token command is no token, and is not repeated', async (_, text, why) => {
  expect(await prints(text).run(auth)).toEqual(failure('cat', why, mustPrint))
})

test.each<unknown>(['', '2999-12-31', '2999-13-31T23:59:59Z', '2999-12-31T23:59:59', '2020-01-01 00:00 (s3cret)', 1])(
  'a token command must not say that its token expires at %j',
  async (expires) => {
    const hint = 'It must be a time such as 2026-01-02T03:04:05Z'
    const result = await prints(JSON.stringify({ token: 's3cret', expires })).run(auth)
    expect(result).toEqual(failure('cat', 'printed an invalid "expires"', hint))
  },
)

test('a token that has expired is not taken', async () => {
  const why = 'printed a token that expired on 2020-01-02T03:04:05.000Z'
  const result = await prints('{"token":"s3cret","expires":"2020-01-02T03:04:05Z"}').run(auth)
  expect(result).toEqual(failure('cat', why, 'Renew the token where the command reads it'))
})

test('a token command is killed when it prints more than 64 KiB', async () => {
  const team = new Team()
  const program = team.script("head -c 10000000 /dev/zero | tr '\\0' x; touch done")
  const why = 'printed more than 64 KiB'
  expect(await team.takes(program).run(auth)).toEqual(failure(program, why, mustPrint))
  expect(team.has('done')).toBe(false)
  expect(await team.takes('yes s3cret').run(auth)).toEqual(failure('yes', why, mustPrint))
})
