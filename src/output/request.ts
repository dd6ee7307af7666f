import { escapeUnsafe } from '../plant/json.js'
import { visible } from '../platform/escape.js'
import type { WireRequest } from '../stores/store.js'

/** What is told of a request besides what it holds. */
interface Way {
  /** what to know of the token, in words */
  token: string
  /** absolute path of a Unix socket */
  socket: string | undefined
  /** host and port */
  proxy: string | undefined
}

/** A request for people, as HTTP writes it. */
export function requestText({ method, url, headers, body }: WireRequest, { token, socket, proxy }: Way): string {
  const over = socket === undefined ? '' : ` over the socket ${visible(socket)}`
  const through = proxy === undefined ? '' : ` through the proxy ${proxy}`
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}${name === 'authorization' ? ` (${token})` : ''}`)
  return `${method} ${visible(url)}${over}${through}\n${lines.join('\n')}\n\n${escapeUnsafe(body)}`
}
