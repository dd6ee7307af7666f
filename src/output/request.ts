import { escapeUnsafe } from '../plant/json.js'
import { escapeControlChars } from '../platform/escape.js'
import type { WireRequest } from '../stores/common/access.js'

/** A request in HTTP's notation, with the source of the token in parentheses. */
export function requestText({ method, url, headers, body }: WireRequest, token: string, socket?: string, proxy?: string): string {
  const over = socket === undefined ? '' : ` over the socket ${escapeControlChars(socket)}`
  const through = proxy === undefined ? '' : ` through the proxy ${proxy}`
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}${name === 'authorization' ? ` (${token})` : ''}`)
  return `${method} ${escapeControlChars(url)}${over}${through}\n${lines.join('\n')}\n\n${escapeUnsafe(body)}`
}
