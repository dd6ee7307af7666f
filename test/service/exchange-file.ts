import { exchangeOnce, type RawRequest } from '../helpers/scripted-server/raw-http.js'
import type { RunningService } from '../helpers/scripted-server/service.js'

/*
 * An exchange file lists requests, and below them what the service responds. A request is one line,
 * and says only what differs from a valid one, because the difference is what the line is about:
 *
 *     PATCH /plants/1 | If-Match: * | without Content-Type | {"name":"Moss"}
 *
 * Each part after a bar is a header, a header that is left out, or the body. Without a body, a POST
 * creates plant 1, and a PATCH renames it. TOKEN stands for a valid token. Consecutive requests with
 * the same response stand above one response, which has the headers that not every response has.
 */

const defaultBodies: Record<string, string> = {
  POST: '{"id":1,"name":"Fern"}',
  PATCH: '{"name":"Fern"}',
}
const volatileHeaders = new Set([
  'connection',
  'date',
  'content-length',
  'keep-alive',
  'request-id',
])
const commonHeaders: Record<string, string> = { 'content-type': 'application/json' }

/** Sends the requests of an exchange file, and returns the file with the responses to them. */
export async function replay(file: string, service: RunningService): Promise<string> {
  const lines: { line: string; response?: string }[] = []
  for (const line of file.split('\n')) {
    const isRequest = /^[A-Z]/.test(line)
    const isResponse = /^\d/.test(line)
    if (isRequest) lines.push({ line, response: await send(line, service) })
    else if (!isResponse) lines.push({ line })
  }
  return lines
    .flatMap(({ line, response }, index) => {
      const isRepeated = response === lines[index + 1]?.response
      return response === undefined || isRepeated ? [line] : [line, response]
    })
    .join('\n')
}

async function send(line: string, service: RunningService): Promise<string> {
  const request = parseRequest(line.replaceAll('TOKEN', service.token))
  const { headers, text } = await exchangeOnce(service, request)
  if (!/^[\da-f]{8}-[\da-z]+$/.test(headers['request-id'] ?? ''))
    throw new Error('A response has no Request-Id')
  // The sentence of the JSON parser differs between runtimes.
  const stableText = text.replace(/(?<=is not JSON: ).+/, '…')
  return [stableText, ...formatHeaders(headers)].join(' ')
}

/** Formats the headers that not every response has, and those that this response lacks. */
function formatHeaders(headers: Record<string, string>): string[] {
  const unusual = Object.entries(headers)
    .filter(([name, value]) => !volatileHeaders.has(name) && value !== commonHeaders[name])
    .map(([name, value]) => `[${name}: ${value}]`)
  const missing = Object.keys(commonHeaders).filter((name) => !(name in headers))
  return [...unusual.toSorted(), ...missing.map((name) => `[no ${name}]`)]
}

function parseRequest(line: string): RawRequest {
  const [start = '', ...parts] = line.split(' | ')
  const [method = '', target = ''] = start.split(' ')
  const headers: Record<string, string | string[] | undefined> = {}
  let body = defaultBodies[method] ?? ''
  for (const part of parts) {
    const [, omitted] = /^without ([A-Z][\w-]*)$/.exec(part) ?? []
    const [, name, value = ''] = /^([A-Z][\w-]*): ?(.*)$/.exec(part) ?? []
    if (omitted !== undefined) headers[omitted] = undefined
    else if (name === undefined) body = part
    else headers[name] = name in headers ? [headers[name] ?? '', value].flat() : value
  }
  return { method, target, headers, body }
}
