import { exchange, type RawRequest } from './raw-http.js'
import type { RunningService } from './service.js'

/**
 * Sends the requests of a text again, and returns it with the responses of now. A request is a line such as `PUT
 * /plants/1 | If-Match: ETAG1 | !Content-Type | {"name":"Moss"}`, with what differs from a usual create: `!` leaves a
 * header out, TOKEN is a valid token, and ETAG1 the first entity tag that a response had. Below it, or below several
 * with the same response, stands the status, with the `error` in parentheses if that differs; then the body, or the
 * message; then the headers that not every response has.
 */
export async function replay(text: string, service: Pick<RunningService, 'place' | 'token'>): Promise<string> {
  const etags: string[] = []
  const lines: { line: string; response?: string }[] = []
  for (const line of text.split('\n')) {
    if (/^[A-Z]/.test(line)) lines.push({ line, response: await responseTo(line, service, etags) })
    else if (!/^\d/.test(line)) lines.push({ line })
  }
  return lines
    .flatMap(({ line, response }, at) =>
      response === undefined || response === lines[at + 1]?.response ? line : [line, response],
    )
    .join('\n')
}

async function responseTo(line: string, service: Pick<RunningService, 'place' | 'token'>, etags: string[]) {
  const given = line.replaceAll('TOKEN', service.token).replace(/ETAG(\d+)/g, (_, count) => etags[count - 1] ?? '')
  const { status, headers, body } = await exchange(service, requestOf(given))
  if (!/^[\da-f]{8}-[\da-z]+$/.test(headers['request-id'] ?? '')) throw new Error('A response has no Request-Id')
  const { etag } = headers
  if (/^"[\w-]+"$/.test(etag ?? '') && !etags.includes(`${etag}`)) etags.push(`${etag}`)
  const shown = Object.entries({ ...headers, ...(etag && { etag: `ETAG${etags.indexOf(etag) + 1}` }) })
    .filter(([name, value]) => !volatile.has(name) && value !== usual[name])
    .map(([name, value]) => ` [${name}: ${value}]`)
    .toSorted()
  const missing = Object.keys(usual).filter((name) => status !== 304 && !(name in headers))
  return `${status}${shownBody(status, body)}${shown.join('')}${missing.map((name) => ` [no ${name}]`).join('')}`
}

const volatile = new Set(['connection', 'date', 'content-length', 'keep-alive', 'request-id'])
const usual: Record<string, string> = { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' }

function requestOf(line: string): RawRequest {
  const [start = '', ...parts] = line.split(' | ')
  const [method = '', target = ''] = start.split(' ')
  const headers: Record<string, string | string[] | undefined> = {}
  let body = { POST: '{"id":1,"name":"Fern"}', PUT: '{"name":"Fern"}' }[method] ?? ''
  for (const part of parts) {
    const [, name, value = ''] = /^([A-Z][\w-]*): ?(.*)$/.exec(part) ?? []
    if (part.startsWith('!')) headers[part.slice(1)] = undefined
    else if (name === undefined) body = part
    else headers[name] = name in headers ? [headers[name] ?? '', value].flat() : value
  }
  return { method, target, headers, body }
}

function shownBody(status: number, body: string): string {
  const [, error, message = ''] = /^\{"error":(\d+),"message":(".*")\}$/.exec(body) ?? []
  if (error === undefined) return body && ` ${body}`
  return `${error === `${status}` ? '' : ` (${error})`} ${JSON.parse(message)}`
}
