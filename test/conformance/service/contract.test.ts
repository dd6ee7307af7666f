import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { readIds } from '../../helpers/sandbox/sqlite-file.js'
import { exchangeOnce, type RawRequest } from '../../helpers/scripted-server/raw-http.js'
import { getStorePath, type RunningService, serve } from '../../helpers/scripted-server/service.js'

const all = 'create,read,update,delete'
const fern = '{"id":1,"name":"Fern"}'
const cors = ['--cors', 'https://garden.example', '--cors', 'http://localhost:5173']

test.each([
  ['create', []],
  ['read', []],
  ['change', []],
  ['cors', cors],
])('exchanges/%s.http shows what the service responds', async (name, flags) => {
  const path = join(import.meta.dirname, `exchanges/${name}.http`)
  const service = await serve(['--allow', all, ...flags])
  await expect(await replay(readFileSync(path, 'utf8'), service)).toMatchFileSnapshot(path)
})

test('a body is UTF-8, and may be as large as the limit, also in chunks', async () => {
  const service = await serve()
  const limit = 1_048_576
  const inChunks = (...chunks: string[]): RawRequest => ({
    headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'Chunked' },
    body: [...chunks, '']
      .map((chunk) => `${chunk.length.toString(16)};a=b\r\n${chunk}\r\n`)
      .join(''),
  })
  const requests: [start: string, RawRequest][] = [
    ['200 ', { body: fern.padEnd(limit) }],
    ['200 ', inChunks('{', '"id":2,"name":"Moss"}')],
    ['400 (413) ', { body: fern.padEnd(limit + 1) }],
    ['400 (413) ', inChunks(' '.repeat(limit + 1))],
    ['400 (401) ', { headers: { Authorization: `Bearer ${'x'.repeat(5000)}` } }],
    ['400 The body is empty', {}],
    ['400 The body is not UTF-8', { body: Buffer.from('{"id":3,"name":"\xfc"}', 'latin1') }],
    ['400 (422) ', { body: '['.repeat(1e5) + ']'.repeat(1e5) }],
  ]
  for (const [start, request] of requests)
    expect((await exchangeOnce(service, request)).text.slice(0, start.length)).toBe(start)
  expect(readIds(getStorePath(service))).toEqual([1, 2])
})

/** After a status: `-` if the service offers no such operation, `+` if the token lacks the right. */
test.each([
  ['', all, ['200', '200', '200', '200', '200', '200']],
  ['create', all, ['200', '403-', '403-', '403-', '403-', '403-']],
  ['read', all, ['400 (403)-', '200', '200', '404', '403-', '403-']],
  [all, 'read', ['400 (403)+', '200', '200', '404', '403+', '403+']],
  ['', '', ['200', '403+', '403+', '403+', '403+', '403+']], // a token of the environment
  [all, '', ['200', '200', '200', '200', '200', '200']],
])('--allow "%s" gives a token with "%s" %j', async (allow, rights, expected) => {
  const service = await serve(allow === '' ? [] : ['--allow', allow], { rights })
  const answerTo = async (right: string, method: string, target: string) => {
    const request = { method, target, body: method.startsWith('P') ? fern : '' }
    const { text, headers } = await exchangeOnce(service, request)
    const challenge = headers['www-authenticate'] ?? ''
    const lacks = 'Bearer realm="plants", error="insufficient_scope"'
    const signs: Record<string, string> = { [lacks]: '-', [`${lacks}, scope="${right}"`]: '+' }
    return `${/^\d+( \(\d+\))?/.exec(text)?.[0]}${signs[challenge] ?? challenge}`
  }
  expect([
    await answerTo('create', 'POST', '/plants'),
    await answerTo('read', 'GET', '/plants'),
    await answerTo('read', 'GET', '/plants/count'),
    await answerTo('read', 'GET', '/plants/1'),
    await answerTo('update', 'PATCH', '/plants/1'),
    await answerTo('delete', 'DELETE', '/plants/1'),
  ]).toEqual(expected)
  const nobody = await exchangeOnce(service, { headers: { Authorization: undefined } })
  expect(nobody.text).toMatch(/^400 \(401\) /) // before 403
})

test.each([
  ['expired', ' --expires 1ms', 'list'],
  ['was revoked', '', 'revoke 2'],
])('a token that %s is rejected by a service that runs', async (_, flags, then) => {
  const world = new Sandbox()
  await world.run('tokens create') // without a valid one, no service starts
  const token = (await world.run(`tokens create${flags}`)).out.trim()
  const service = { ...(await serve([], { folder: world.home, env: {} })), token }
  await exchangeOnce(service, { body: fern })
  await world.run(`tokens ${then}`)
  await expect
    .poll(() => exchangeOnce(service, { body: fern }))
    .toMatchObject({
      status: 400,
      headers: { 'www-authenticate': 'Bearer realm="plants", error="invalid_token"' },
    })
})

test.each(['/a/b.c~d/', '/v1/plants'])('the base path %s stands before all paths', async (path) => {
  const base = path.replace(/\/$/, '')
  const service = await serve(['--base-path', path, '--cors', '*'])
  expect(new URL(service.address).pathname).toBe(base)
  const created = await exchangeOnce(service, { target: `${base}/plants`, body: fern })
  expect(created.text).toBe('200 {"name":"Fern"}')
  const description = { method: 'GET', target: `${base}/openapi.json` }
  const { body, headers } = await exchangeOnce(service, {
    ...description,
    headers: { Authorization: undefined, Origin: 'https://any.example' },
  })
  expect(JSON.parse(body).servers).toEqual([{ url: base }])
  expect(headers['access-control-allow-origin']).toBe('*')
  for (const target of ['/plantsx', '/openapi.json', base, `${base}/`, `${base}x/plants`])
    expect((await exchangeOnce(service, { target, body: fern })).text).toMatch(
      RegExp(`^404 .* ${base}/openapi\\.json$`),
    )
})

test.each(['https://garden.example/', 'null', ''])('--cors takes no "%s"', async (origin) => {
  const { code, out } = await new Sandbox().run(['serve', '--cors', origin])
  expect({ code, out }).toEqual({ code: 2, out: '' })
})

/**
 * Sends the requests of a text again, and returns it with the responses of now. A request is a line such as
 * `PATCH /plants/1 | If-Match: * | !Content-Type | {"name":"Moss"}`, with what differs from a usual create: `!` leaves
 * a header out, and TOKEN is a valid token. Below it, or below several, stands the response, with the headers that not
 * every one has.
 */
async function replay(text: string, service: RunningService): Promise<string> {
  const lines: { line: string; response?: string }[] = []
  for (const line of text.split('\n')) {
    if (/^[A-Z]/.test(line)) lines.push({ line, response: await responseTo(line, service) })
    else if (!/^\d/.test(line)) lines.push({ line })
  }
  return lines
    .flatMap(({ line, response }, at) =>
      response === undefined || response === lines[at + 1]?.response ? line : [line, response],
    )
    .join('\n')
}

async function responseTo(line: string, service: RunningService) {
  const given = line.replaceAll('TOKEN', service.token)
  const { headers, text } = await exchangeOnce(service, requestOf(given))
  if (!/^[\da-f]{8}-[\da-z]+$/.test(headers['request-id'] ?? ''))
    throw new Error('A response has no Request-Id')
  const shown = Object.entries(headers)
    .filter(([name, value]) => !volatile.has(name) && value !== usual[name])
    .map(([name, value]) => ` [${name}: ${value}]`)
    .toSorted()
  const missing = Object.keys(usual).filter((name) => !(name in headers))
  const sentence = text.replace(/(?<=is not JSON: ).+/, '…') // of the parser, which differs between runtimes
  return `${sentence}${shown.join('')}${missing.map((name) => ` [no ${name}]`).join('')}`
}

const volatile = new Set(['connection', 'date', 'content-length', 'keep-alive', 'request-id'])
const usual: Record<string, string> = { 'content-type': 'application/json' }

function requestOf(line: string): RawRequest {
  const [start = '', ...parts] = line.split(' | ')
  const [method = '', target = ''] = start.split(' ')
  const headers: Record<string, string | string[] | undefined> = {}
  let body = { POST: '{"id":1,"name":"Fern"}', PATCH: '{"name":"Fern"}' }[method] ?? ''
  for (const part of parts) {
    const [, name, value = ''] = /^([A-Z][\w-]*): ?(.*)$/.exec(part) ?? []
    if (part.startsWith('!')) headers[part.slice(1)] = undefined
    else if (name === undefined) body = part
    else headers[name] = name in headers ? [headers[name] ?? '', value].flat() : value
  }
  return { method, target, headers, body }
}
