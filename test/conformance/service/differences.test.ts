import { expect, test } from 'vitest'
import { differences } from '../../helpers/differences.js'
import { connectTo, requestBytes } from '../../helpers/raw-http.js'
import { serveForAll, testToken } from '../../helpers/service.js'

const service = serveForAll(['--request-timeout', '300ms'])

const headers = 'Host: plants.example\r\nContent-Length: 0\r\n'
const requests: Record<string, string | Buffer> = {
  'POST *': `POST * HTTP/1.1\r\n${headers}\r\n`,
  'OPTIONS *': `OPTIONS * HTTP/1.1\r\n${headers}\r\n`,
  'POST ftp://plants.example/plants': `POST ftp://plants.example/plants HTTP/1.1\r\n${headers}\r\n`,
  'GET /openapi.json HTTP/2.0': `GET /openapi.json HTTP/2.0\r\n${headers}\r\n`,
  'GET /openapi.json, as HTTP/0.9 has it': 'GET /openapi.json\r\n',
  'POST /plants with two spaces': `POST  /plants HTTP/1.1\r\n${headers}\r\n`,
  'POST /plants RTSP/1.0': `POST /plants RTSP/1.0\r\n${headers}\r\n`,
  'a chunk extension in quotes, with a space': inChunks('chunked', '1;a="b c"'),
  'Transfer-Encoding: chunked and a tab': inChunks('chunked\t', '1'),
  'more than 200 headers': requestBytes('no token', {
    headers: { a: Array.from({ length: 201 }, () => 'b') },
    body: '{"id":1,"name":"Fern"}',
  }),
}

function inChunks(coding: string, size: string): Buffer {
  return requestBytes(testToken, {
    headers: { 'Content-Length': undefined, 'Transfer-Encoding': coding },
    body: `${size}\r\nx\r\n0\r\n\r\n`,
  })
}

test('docs/platforms.md lists the requests that are tried here, and no other', () => {
  expect([...differences.keys()]).toEqual(Object.keys(requests))
})

test.each(Object.entries(requests))('%s gets the response that docs/platforms.md shows', async (name, bytes) => {
  const connection = await connectTo(service().place)
  connection.send(bytes)
  const answer = await connection.answer()
  const { error } = JSON.parse(answer?.body || '{}')
  expect(answer ? `${answer.status}, ${error}` : 'none').toBe(differences.get(name))
})
