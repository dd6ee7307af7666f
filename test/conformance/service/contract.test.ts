import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { differs } from '../../helpers/differences.js'
import { exchange, type RawRequest } from '../../helpers/raw-http.js'
import { runPlants } from '../../helpers/run.js'
import { type RunningService, serveForAll, testToken } from '../../helpers/service.js'
import { answerTo, common, planted } from '../../helpers/service-answers.js'

const limit = 1_048_576
const range = 'an integer from -9223372036854775808 to 9223372036854775807'
const fern = '{"id":1,"name":"Fern"}'
const noToken = 'No bearer token: send one in the header Authorization, as "Bearer TOKEN"'
const badKey = 'Idempotency-Key must be 1 to 255 visible ASCII characters, and must not be repeated'
const nowhere = 'There is nothing at this path. The API is described at /openapi.json'
const tooLarge = `The body is larger than ${limit} bytes`

/** What an answer must be, all of it: the status, the body, and the headers that not every answer has. */
interface Expected {
  status: number
  body: unknown
  headers?: Record<string, string>
}

type Row = [title: string, request: RawRequest, expected: Expected, stored?: string]

/** A plant is stored, and told again as it was given. */
function created(title: string, request: RawRequest, stored: string, answer = '{"name":"Fern"}'): Row {
  return [title, request, { status: 200, body: answer }, stored]
}

/** The operation says no: the status is 400, and `error` tells why. */
function refused(
  error: number,
  title: string,
  request: RawRequest,
  message: string,
  headers?: Record<string, string>,
): Row {
  return [title, { body: fern, ...request }, { status: 400, body: { error, message }, ...(headers && { headers }) }]
}

function missing(title: string, request: RawRequest): Row {
  return [title, { body: fern, ...request }, { status: 404, body: { error: 404, message: nowhere } }]
}

function notAllowed(method: string, request: RawRequest = {}, title = `${method} /plants`): Row {
  const message = `/plants allows POST, GET, HEAD, but not ${method}`
  const body = method === 'HEAD' ? '' : { error: 405, message }
  return [title, { method, ...request }, { status: 405, body, headers: { allow: 'POST, GET, HEAD' } }]
}

const good: Row[] = [
  created('a plant', { body: '{"id":2,"name":"Fern"}' }, '{"id":2,"name":"Fern"}'),
  created(
    'a tag',
    { body: '{"tag":"shade","name":"Fern","id":3}' },
    '{"id":3,"name":"Fern","tag":"shade"}',
    '{"name":"Fern","tag":"shade"}',
  ),
  created(
    'an empty name and tag',
    { body: '{"id":4,"name":"","tag":""}' },
    '{"id":4,"name":"","tag":""}',
    '{"name":"","tag":""}',
  ),
  ...[
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['9007199254740993', '9007199254740993'],
    ['5.0', '5'],
    ['1e3', '1000'],
    ['12300e-2', '123'],
    ['0e999999999', '0'],
    ['0.6E1', '6'],
  ].map(([id, exact]) =>
    created(`the id ${id}`, { body: `{"id":${id},"name":"Fern"}` }, `{"id":${exact},"name":"Fern"}`),
  ),
  created('other fields', { body: '{"id":7,"name":"Fern","nmae":{"id":8},"Tag":"x"}' }, '{"id":7,"name":"Fern"}'),
  created(
    'repeated keys',
    { body: '{"id":"x","id":8,"name":5,"name":"Fern","tag":"x","tag":"y"}' },
    '{"id":8,"name":"Fern","tag":"y"}',
    '{"name":"Fern","tag":"y"}',
  ),
  created(
    'all of Unicode',
    { body: '{"id":9,"name":"\u{1f33f}\\ud83c\\udf3f \u0001\u202e"}'.replace('\u0001', '\\u0001') },
    '{"id":9,"name":"\u{1f33f}\u{1f33f} \\u0001\\u202e"}',
    '{"name":"\u{1f33f}\u{1f33f} \\u0001\u202e"}',
  ),
  created('white space around', { body: '\r\n\t {"id":10,"name":"Fern"}\n' }, '{"id":10,"name":"Fern"}'),
  created('a body as large as the limit', { body: '{"id":11,"name":"Fern"}'.padEnd(limit) }, '{"id":11,"name":"Fern"}'),
  created(
    'a body in chunks',
    {
      headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
      body: '1\r\n{\r\n16;a=b\r\n"id":12,"name":"Fern"}\r\n0\r\n\r\n',
    },
    '{"id":12,"name":"Fern"}',
  ),
  ...[
    'application/json;charset=utf-8',
    'application/json; charset="UTF-8"',
    'APPLICATION/JSON',
    'application/json ;',
    'application/json; x',
    'application/json;;;=,"',
    'application/json\t; a=b',
  ].map((type, at) =>
    created(
      `Content-Type: ${type}`,
      { headers: { 'Content-Type': type }, body: `{"id":${20 + at},"name":"Fern"}` },
      `{"id":${20 + at},"name":"Fern"}`,
    ),
  ),
  ...['identity', 'Identity'].map((coding, at) =>
    created(
      `Content-Encoding: ${coding}`,
      { headers: { 'Content-Encoding': coding }, body: `{"id":${30 + at},"name":"Fern"}` },
      `{"id":${30 + at},"name":"Fern"}`,
    ),
  ),
  ...[
    `bearer ${testToken}`,
    `BEARER ${testToken}`,
    `bEaReR ${testToken}`,
    `Bearer    ${testToken}`,
    `Bearer ${testToken}  `,
  ].map((value, at) =>
    created(
      `Authorization: ${value}.`,
      { headers: { Authorization: value }, body: `{"id":${40 + at},"name":"Fern"}` },
      `{"id":${40 + at},"name":"Fern"}`,
    ),
  ),
  ...['/plants?x=1', '/plants?', 'http://plants.example/plants', 'HTTP://plants.example:80/plants?x'].map(
    (target, at) =>
      created(`POST ${target}`, { target, body: `{"id":${50 + at},"name":"Fern"}` }, `{"id":${50 + at},"name":"Fern"}`),
  ),
  ...['k', 'k'.repeat(255), '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'].map((key, at) =>
    created(
      `an Idempotency-Key of ${key.length} characters`,
      { headers: { 'Idempotency-Key': key }, body: `{"id":${60 + at},"name":"Fern"}` },
      `{"id":${60 + at},"name":"Fern"}`,
    ),
  ),
  [
    'a key that was used for the same plant',
    { headers: { 'Idempotency-Key': 'used' }, body: '{"name":"Fern","id":409.0}' },
    { status: 200, body: '{"name":"Fern"}' },
  ],
]

const challenge = { 'www-authenticate': 'Bearer realm="plants"' }
const unauthorized: Row[] = [
  ...[
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Basic dXNlcjpwYXNz',
    testToken,
    `Bearer: ${testToken}`,
    `Bearer${testToken}`,
  ].map((value) => refused(401, `Authorization: ${value}`, { headers: { Authorization: value } }, noToken, challenge)),
  refused(
    401,
    'a token in the query',
    { target: `/plants?access_token=${testToken}`, headers: { Authorization: undefined } },
    noToken,
    challenge,
  ),
  ...['wrong', testToken.slice(1), `${testToken}x`, testToken.toLowerCase(), 'x'.repeat(5000)].map((token) =>
    refused(401, `Bearer ${token}`, { headers: { Authorization: `Bearer ${token}` } }, 'This token is not accepted', {
      'www-authenticate': 'Bearer realm="plants", error="invalid_token"',
    }),
  ),
]

const mediaTypes: Row[] = [
  refused(
    415,
    'no Content-Type',
    { headers: { 'Content-Type': undefined } },
    'Content-Type must be application/json, but is missing',
  ),
  ...[
    'text/plain',
    'application/jsonx',
    'application/json text',
    'application/json, text/plain',
    'application/problem+json',
    'json',
    '*/*',
    '',
  ].map((type) =>
    refused(
      415,
      `Content-Type: ${type}`,
      { headers: { 'Content-Type': type } },
      `Content-Type must be application/json, but was ${JSON.stringify(type)}`,
    ),
  ),
  ...['gzip', 'br', 'identity, gzip', 'x'].map((coding) =>
    refused(
      415,
      `Content-Encoding: ${coding}`,
      { headers: { 'Content-Encoding': coding } },
      `The body must have no Content-Encoding, but had ${JSON.stringify(coding)}`,
    ),
  ),
]

const inChunks = (size: number) => ({
  headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
  body: `${size.toString(16)}\r\n${' '.repeat(size)}\r\n0\r\n\r\n`,
})
const large: Row[] = [
  refused(413, 'a body one byte larger than the limit', { body: fern.padEnd(limit + 1) }, tooLarge),
  refused(
    413,
    'a Content-Length larger than the limit',
    { headers: { 'Content-Length': '99999999999' }, body: '' },
    tooLarge,
  ),
  refused(413, 'chunks larger than the limit', inChunks(limit + 1), tooLarge),
]

const json = (title: string, body: string | Uint8Array, message: string) => refused(400, title, { body }, message)
const malformed: Row[] = [
  json('nothing', '', 'The body is empty'),
  refused(400, 'nothing in chunks', inChunks(0), 'The body is empty'),
  json('white space alone', ' \n', 'The body is not JSON: unexpected end of input at line 2, column 1'),
  json('no JSON', 'id=1&name=Fern', 'The body is not JSON: unexpected "i" at line 1, column 1'),
  json('half of it', '{"id":1,"name":"Fe', 'The body is not JSON: unexpected end of input at line 1, column 19'),
  json('a byte order mark', `\ufeff${fern}`, 'The body is not JSON: unexpected U+FEFF at line 1, column 1'),
  json('a byte order mark alone', '\ufeff', 'The body is not JSON: unexpected U+FEFF at line 1, column 1'),
  json('UTF-16', Buffer.from(`\ufeff${fern}`, 'utf16le'), 'The body is not UTF-8'),
  json('Latin-1', Buffer.from('{"id":1,"name":"gr\u00fcn"}', 'latin1'), 'The body is not UTF-8'),
  json(
    'a surrogate in UTF-8',
    Buffer.from('7b22696422 3a312c226e616d65223a22eda080227d'.replace(' ', ''), 'hex'),
    'The body is not UTF-8',
  ),
  json('an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'The body is not UTF-8'),
  json('two values', `${fern}\n${fern}`, 'The body contains more than one JSON value, the second at line 2, column 1'),
  json(
    '100,000 open brackets',
    '['.repeat(100_000),
    'The body is not JSON: unexpected end of input at line 1, column 100001',
  ),
  json('U+0000 as it is', '{"id":1,"name":"\u0000"}', 'The body is not JSON: unexpected U+0000 at line 1, column 17'),
  ...['', 'a b', 'a\tb', '\u00e9', 'k'.repeat(256)].map((key) =>
    refused(
      400,
      `the Idempotency-Key "${key.slice(0, 9)}" of ${key.length}`,
      { headers: { 'Idempotency-Key': key } },
      badKey,
    ),
  ),
  refused(400, 'two Idempotency-Keys', { headers: { 'Idempotency-Key': ['a', 'b'] } }, badKey),
  refused(400, 'the same Idempotency-Key twice', { headers: { 'Idempotency-Key': ['a', 'a'] } }, badKey),
]

const invalid: Row[] = [
  ['null', 'it must be an object, but was null'],
  ['[]', 'it must be an object, but was an array'],
  [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'it must be an object, but was an array'],
  ['"Fern"', 'it must be an object, but was "Fern"'],
  ['{}', 'id must be an integer, but is missing; name must be a string, but is missing'],
  ['{"name":"Fern"}', 'id must be an integer, but is missing'],
  ['{"id":1}', 'name must be a string, but is missing'],
  ['{"id":1,"nmae":"Fern"}', 'name must be a string, but is missing'],
  [
    '{"tag":2,"name":5,"id":"x"}',
    'id must be an integer, in digits only, but was "x"; name must be a string, but was a number; tag must be a string, but was a number',
  ],
  ['{"id":1,"name":"Fern","tag":null}', 'tag must be a string, but was null'],
  ['{"id":1,"name":null}', 'name must be a string, but was null'],
  ['{"id":1,"name":"\\ud83c"}', 'name must be well-formed Unicode, but contains a lone surrogate'],
  ['{"id":1,"name":"Fern","tag":"\\udf3f\\ud83c"}', 'tag must be well-formed Unicode, but contains a lone surrogate'],
  ['{"id":1,"name":"a\\u0000b"}', 'name must be text without U+0000, but contains it'],
  ['{"id":1,"name":"Fern","tag":"\\u0000"}', 'tag must be text without U+0000, but contains it'],
  ...['1.0000000000000000001', '1.5', '1e-1', 'null', 'true'].map((id) => [
    `{"id":${id},"name":"Fern"}`,
    `id must be an integer, but was ${id}`,
  ]),
  ...['9223372036854775808', '-9223372036854775809', '1e999999999'].map((id) => [
    `{"id":${id},"name":"Fern"}`,
    `id must be ${range}, but was ${id}`,
  ]),
  ['{"id":1,"id":"1","name":"Fern"}', 'id must be an integer, not a string, but was "1"'],
].map(([body = '', problems]) => refused(422, body.slice(0, 60), { body }, `Invalid plant: ${problems}`))

const conflicts: Row[] = [
  refused(409, 'an id that is taken', { body: '{"id":409,"name":"Moss"}' }, 'A plant with id 409 already exists'),
  refused(
    409,
    'an id that is taken, by the same plant',
    { body: '{"id":409,"name":"Fern"}' },
    'A plant with id 409 already exists',
  ),
  refused(
    409,
    'the same plant with another key',
    { headers: { 'Idempotency-Key': 'another' }, body: '{"id":409,"name":"Fern"}' },
    'A plant with id 409 already exists',
  ),
  ...['{"id":1,"name":"Fern"}', '{"id":409,"name":"Moss"}', '{"id":409,"name":"Fern","tag":""}'].map((body) =>
    refused(
      409,
      `a key that made another plant than ${body}`,
      { headers: { 'Idempotency-Key': 'used' }, body },
      'This idempotency key was used for a different plant',
    ),
  ),
]

const outside: Row[] = [
  ...[
    '/',
    '/plants/',
    '//plants',
    '/PLANTS',
    '/plants;x',
    '/plants%2f',
    '/plants%00',
    '/./plants',
    '/v1/plants',
    '/constructor',
    '/%',
    '/%70lants',
    '*',
  ].map((target) => missing(`POST ${target}`, { target })),
  missing('POST http://plants.example', { target: 'http://plants.example' }),
  missing('POST ftp://plants.example/plants', { target: 'ftp://plants.example/plants' }),
  missing('OPTIONS *', { method: 'OPTIONS', target: '*' }),
  ...'PUT PATCH DELETE OPTIONS TRACE PROPFIND MKCOL LOCK M-SEARCH SOURCE PURGE'
    .split(' ')
    .map((method) => notAllowed(method)),
  notAllowed('PUT', { target: '/plants?x=1' }, 'PUT /plants?x=1'),
  notAllowed('PUT', { target: 'http://plants.example/plants' }, 'PUT http://plants.example/plants'),
  [
    'POST /plants/1',
    { target: '/plants/1', body: fern },
    {
      status: 405,
      body: { error: 405, message: '/plants/{id} allows GET, HEAD, PUT, DELETE, but not POST' },
      headers: { allow: 'GET, HEAD, PUT, DELETE' },
    },
  ],
  ...['POST', 'PUT', 'PROPFIND'].map(
    (method): Row => [
      `${method} /openapi.json`,
      { method, target: '/openapi.json', body: fern },
      {
        status: 405,
        body: { error: 405, message: `/openapi.json allows GET, HEAD, but not ${method}` },
        headers: { allow: 'GET, HEAD' },
      },
    ],
  ),
]

/** Each is wrong in two ways at least; the first of "404, 405, 401, 415, 413, 400, 422, 409" is told. */
const order: Row[] = [
  missing('404 before 405', { method: 'PUT', target: '/nope' }),
  missing('404 before 401', { target: '/nope', headers: { Authorization: undefined } }),
  missing('404 before 415', { target: '/nope', headers: { 'Content-Type': 'junk' } }),
  missing('404 before 413', { target: '/nope', headers: { 'Content-Length': '99999999' }, body: '' }),
  missing('404 before a body has come', { target: '/nope', headers: { 'Content-Length': '10' }, body: '' }),
  notAllowed('PUT', { headers: { Authorization: undefined } }, '405 before 401'),
  notAllowed('PUT', { headers: { 'Content-Type': 'junk' }, body: fern }, '405 before 415'),
  notAllowed('PUT', { headers: { 'Content-Length': '99999999' } }, '405 before 413'),
  notAllowed('PUT', { headers: { 'Content-Length': '10' } }, '405 before a body has come'),
  refused(
    401,
    '401 before 415',
    { headers: { Authorization: undefined, 'Content-Type': 'text/plain' } },
    noToken,
    challenge,
  ),
  refused(
    401,
    '401 before 413',
    { headers: { Authorization: undefined, 'Content-Length': '99999999' }, body: '' },
    noToken,
    challenge,
  ),
  refused(
    401,
    '401 before a body has come',
    { headers: { Authorization: undefined, 'Content-Length': '10' }, body: '' },
    noToken,
    challenge,
  ),
  refused(
    415,
    '415 before 413',
    { headers: { 'Content-Type': 'text/plain', 'Content-Length': '99999999' }, body: '' },
    'Content-Type must be application/json, but was "text/plain"',
  ),
  refused(413, '413 before 400 (not UTF-8)', { body: new Uint8Array(limit + 1).fill(0xff) }, tooLarge),
  refused(
    413,
    '413 before 400 (the key)',
    { headers: { 'Idempotency-Key': '' }, body: ' '.repeat(limit + 1) },
    tooLarge,
  ),
  refused(400, '400 (the key) before 422', { headers: { 'Idempotency-Key': 'a b' }, body: '{}' }, badKey),
  refused(
    400,
    '400 (the key) before 409',
    { headers: { 'Idempotency-Key': 'a b' }, body: '{"id":409,"name":"Moss"}' },
    badKey,
  ),
  refused(
    400,
    '400 (not JSON) before 409',
    { headers: { 'Idempotency-Key': 'used' }, body: '{' },
    'The body is not JSON: unexpected end of input at line 1, column 2',
  ),
  refused(
    422,
    '422 before 409 (the id)',
    { body: '{"id":409}' },
    'Invalid plant: name must be a string, but is missing',
  ),
  refused(
    422,
    '422 before 409 (the key)',
    { headers: { 'Idempotency-Key': 'used' }, body: '{"id":1}' },
    'Invalid plant: name must be a string, but is missing',
  ),
]

describe('POST /plants by the contract:', () => {
  const service = serveForAll()
  const rows = [good, unauthorized, mediaTypes, large, malformed, invalid, conflicts, outside, order]
    .flat()
    .filter(([title]) => !differs(title))

  let known = 0
  const countOf = () => {
    const db = new DatabaseSync(join(service().folder, 'data/plants.db'), { readOnly: true })
    try {
      return Number(db.prepare('SELECT count(*) AS count FROM plants').get()?.['count'])
    } finally {
      db.close()
    }
  }

  beforeAll(async () => {
    expect(
      await answerTo(service(), { headers: { 'Idempotency-Key': 'used' }, body: '{"id":409,"name":"Fern"}' }),
    ).toEqual(planted)
    known = countOf()
  })

  test.each(rows)('%s', async (_, request, { status, body, headers = {} }, stored) => {
    const before = known
    const answer = await answerTo(service(), request)
    known = countOf()
    expect(answer).toEqual({ status, body, headers: { ...common, ...headers } })
    expect(known - before).toBe(stored === undefined ? 0 : 1)
    if (stored !== undefined) expect(await listOf(service())).toContain(stored)
  })

  test('every answer has an id of its own, which the log knows', async () => {
    const ids = await Promise.all(
      [...rows.filter(([, { method }]) => method !== 'HEAD').slice(0, 20)].map(
        async ([, request]) => (await exchange(service(), request)).headers['request-id'],
      ),
    )
    expect(new Set(ids).size).toBe(20)
    await expect.poll(() => service().log.map(({ requestId }) => requestId)).toEqual(expect.arrayContaining(ids))
  })

  test('/openapi.json is told without a token, and lists Idempotency-Key', async () => {
    const { body, ...answer } = await answerTo(service(), {
      method: 'GET',
      target: '/openapi.json',
      headers: { Authorization: undefined },
    })
    expect(answer).toEqual({ status: 200, headers: common })
    const { openapi, paths, components } = JSON.parse(String(body))
    expect(openapi).toMatch(/^3\.1\./)
    expect(paths['/plants'].post.parameters).toContainEqual({ $ref: '#/components/parameters/IdempotencyKey' })
    expect(components.parameters.IdempotencyKey).toMatchObject({
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
    })
    const head = await answerTo(service(), {
      method: 'HEAD',
      target: '/openapi.json',
      headers: { Authorization: undefined },
    })
    expect(head).toEqual({ status: 200, body: '', headers: common })
  })
})

async function listOf({ folder }: RunningService): Promise<string[]> {
  const { code, out } = await runPlants(['list'], { env: { PLANTS_DATA_DIR: join(folder, 'data') } })
  expect(code).toBe(0)
  return out.split('\n').filter((line) => line !== '')
}
