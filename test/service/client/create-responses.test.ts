import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { buildJsonResponse, buildResponse } from '../../helpers/scripted-server/scripted-server.js'
import {
  buildFailure,
  created,
  createWithoutKeys,
  cutAfter,
  jsonHead,
  repeatHint,
} from './steps.js'

// What a create makes of a complete response. Connections that break are in create-outcomes.test.ts,
// and what is sent again is in create-retries.test.ts.

const fern = '{"name":"Fern"}'

function buildTyped(contentType: string, body: string | Buffer = fern): Buffer {
  return buildResponse(200, body, { 'Content-Type': contentType })
}

const earlyHints = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'

test.each([
  { kind: 'with a charset', response: buildTyped('Application/JSON ; charset=utf-8') },
  { kind: 'of exactly 4 MiB', response: buildJsonResponse(200, fern.padEnd(4_194_304)) },
  {
    kind: 'that ends with the connection',
    response: cutAfter(`${jsonHead}\r\n${fern}`),
  },
  {
    kind: 'after the interim responses 102, 103 and 100',
    response: `HTTP/1.1 102 Processing\r\n\r\n${earlyHints}${buildJsonResponse(200, fern)}`,
  },
  {
    kind: 'that differs from what was sent',
    response: buildJsonResponse(200, '{"tag":"","name":"Moss"}'),
    out: '{"name":"Moss","tag":""}',
  },
])('a create accepts a response with a Plant $kind', async ({ response, out = fern }) => {
  expect(await createWithoutKeys(response)).toEqual({ ...created, out: `${out}\n` })
})

test.each([
  {
    kind: 'HTML',
    response: buildTyped('text/html; charset=utf-8', '<h1>Hi</h1>'),
    message: '200 with a web page',
  },
  {
    kind: 'a Plant as text/plain',
    response: buildTyped('text/plain'),
    message: `application/json: ${fern}`,
  },
  {
    kind: 'a Plant without a Content-Type',
    response: buildResponse(200, fern),
    message: 'no Content-Type',
  },
  {
    kind: 'JSON of another API',
    response: buildJsonResponse(200, { hello: 'you' }),
    message: 'URL answered 200 with no Plant: {"hello":"you"}',
  },
  {
    kind: 'a list of Plants',
    response: buildJsonResponse(200, `[${fern}]`),
    message: '200 with no Plant: [',
  },
  {
    kind: 'JSON that is cut short',
    response: buildJsonResponse(200, '{"name":'),
    message: '200 with no Plant: {"name":',
  },
  {
    kind: 'JSON that is not UTF-8',
    response: buildTyped('application/json', Buffer.from('{"name":"F\xe4rn"}', 'latin1')),
    message: 'URL answered 200 with a body that is not UTF-8: {"name":"F\ufffdrn"}',
  },
  {
    kind: 'a compressed body, which no request asked for',
    response: buildResponse(200, gzipSync(fern), {
      'Content-Type': 'application/json',
      'Content-Encoding': 'gzip',
    }),
    message: 'URL answered 200 with a compressed body (gzip)',
  },
  {
    kind: 'a Plant whose tag is a number',
    response: buildJsonResponse(200, { name: 'Fern', tag: 1 }),
    message: '200 with no Plant: {"name":"Fern","tag":1}',
  },
  {
    kind: 'a Plant whose name is in __proto__',
    response: buildJsonResponse(200, `{"__proto__":${fern}}`),
    message: '__proto__',
  },
  {
    kind: 'a Plant with the status 201',
    response: buildJsonResponse(201, fern),
    message: `201: ${fern}`,
    status: 201,
  },
  {
    kind: 'no body with the status 204',
    response: 'HTTP/1.1 204 No Content\r\n\r\n',
    message: '204 with nothing',
    status: 204,
  },
  {
    kind: 'a redirect, whose password and query are not shown',
    response: buildResponse(303, '', {
      Location: 'https://u:s3cret-1@example.com/v2?state=s3cret-2',
    }),
    message: 'redirects to https://example.com/v2',
    status: 303,
  },
])('a create fails after a response with $kind', async ({ response, message, status = 200 }) => {
  const error = { error: 502, message: expect.stringContaining(message), status, ...repeatHint }
  expect(await createWithoutKeys(response)).toEqual(buildFailure(5, error))
})

test.each([301, 302, 307, 308])('a create does not follow a redirect: %i', async (status) => {
  const error = { error: 503, message: expect.stringContaining('URL/v2'), status }
  const response = buildResponse(status, '', { Location: '/v2' })
  expect(await createWithoutKeys(response)).toEqual(buildFailure(4, error))
})

describe('the Error of a service', () => {
  test.each([
    { status: 401, error: 401, code: 3 },
    { status: 403, error: 403, code: 3 },
    { status: 409, error: 409, code: 1 },
    { status: 418, error: 418, code: 1 },
    { status: 400, error: 401, code: 3 },
    { status: 400, error: 409, code: 1 },
    { status: 400, error: 2_147_483_647, code: 1 },
  ])('$error in a response $status rejects the plant, with exit code $code', async (row) => {
    const { status, error, code } = row
    const message = 'No ferns today'
    const response = buildJsonResponse(status, { error, message }, { 'Request-Id': 'abc-1' })
    // A message names the service unless it concerns the plant.
    const shown = code === 3 || status === 418 ? `URL answered ${status}: ${message}` : message
    const failure = { error, message: shown, status, requestId: 'abc-1' }
    expect(await createWithoutKeys(response)).toEqual(buildFailure(code, failure))
  })

  test.each([
    '"error":2147483648,"message":"No"',
    '"error":"409","message":"No"',
    '"error":409,"message":{}',
    '"error":409',
  ])('is invalid with the members %s', async (members) => {
    const message = `URL answered 400: {${members}}`
    const error = { error: 400, message, status: 400 }
    const response = buildJsonResponse(400, `{${members}}`)
    expect(await createWithoutKeys(response)).toEqual(buildFailure(1, error))
  })

  test('is shown in one line of at most 200 characters', async () => {
    const message = `No ferns\n\t ${'x'.repeat(189)}${'\u{1f331}'.repeat(1000)}`
    const { stderr } = await createWithoutKeys(buildJsonResponse(400, { error: 400, message }))
    expect(stderr).toMatchObject([{ message: `No ferns ${'x'.repeat(189)}\u{1f331}…` }])
  })
})
