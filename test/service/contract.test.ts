import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Sandbox } from '../helpers/sandbox/sandbox.js'
import { readIds } from '../helpers/sandbox/sqlite-file.js'
import { exchangeOnce, type RawRequest } from '../helpers/scripted-server/raw-http.js'
import { getStorePath, serve } from '../helpers/scripted-server/service.js'
import { replay } from './exchange-file.js'

const fern = '{"id":1,"name":"Fern"}'
const cors = ['--cors', 'https://garden.example', '--cors', 'http://localhost:5173']

test.each([
  { file: 'create.http', flags: [] },
  { file: 'read.http', flags: [] },
  { file: 'change.http', flags: [] },
  { file: 'cors.http', flags: cors },
])('a service responds to each request of $file as the file says', async ({ file, flags }) => {
  const path = join(import.meta.dirname, 'exchanges', file)
  const service = await serve(['--allow', 'create,read,update,delete', ...flags])
  await expect(await replay(readFileSync(path, 'utf8'), service)).toMatchFileSnapshot(path)
})

test('a service accepts only bodies of UTF-8 up to the limit, with a length or in chunks', async () => {
  const service = await serve()
  const limitBytes = 1_048_576
  const inChunks = (...chunks: string[]): RawRequest => ({
    headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'Chunked' },
    body: [...chunks, '']
      .map((chunk) => `${chunk.length.toString(16)};a=b\r\n${chunk}\r\n`)
      .join(''),
  })
  const longToken = { Authorization: `Bearer ${'x'.repeat(5000)}` }
  const requests: { request: RawRequest; start: string }[] = [
    { request: { body: fern.padEnd(limitBytes) }, start: '200 ' },
    { request: inChunks('{', '"id":2,"name":"Moss"}'), start: '200 ' },
    { request: { body: fern.padEnd(limitBytes + 1) }, start: '400 (413) ' },
    { request: inChunks(' '.repeat(limitBytes + 1)), start: '400 (413) ' },
    { request: { headers: longToken }, start: '400 (401) ' },
    { request: {}, start: '400 The body is empty' },
    {
      request: { body: Buffer.from('{"id":3,"name":"\xfc"}', 'latin1') },
      start: '400 The body is not UTF-8',
    },
    { request: { body: '['.repeat(1e5) + ']'.repeat(1e5) }, start: '400 (422) ' },
  ]
  for (const { request, start } of requests)
    expect((await exchangeOnce(service, request)).text.slice(0, start.length)).toBe(start)
  expect(readIds(getStorePath(service))).toEqual([1, 2])
})

test.each(['https://garden.example/', 'null', ''])(
  'serve rejects --cors "%s", which is not an origin',
  async (origin) => {
    const { code, out } = await new Sandbox().run(['serve', '--cors', origin])
    expect({ code, out }).toEqual({ code: 2, out: '' })
  },
)
