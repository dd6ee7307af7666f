import { escapeUnsafe } from '../plant/json.js'
import { shellWord } from '../platform/errors.js'
import { escapeControlChars } from '../platform/escape.js'
import type { RemoteAddress } from '../stores/address.js'
import type { WireRequest } from '../stores/http/types.js'

/** What is told of a request besides what it holds. */
interface RequestNotes {
  /** what to know of the token, in words */
  token: string
  /** absolute path of a Unix socket */
  socket: string | undefined
  /** host and port */
  proxy: string | undefined
}

/** A request for people, as HTTP writes it. */
export function requestText({ method, url, headers, body }: WireRequest, { token, socket, proxy }: RequestNotes): string {
  const over = socket === undefined ? '' : ` over the socket ${escapeControlChars(socket)}`
  const through = proxy === undefined ? '' : ` through the proxy ${proxy}`
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}${name === 'authorization' ? ` (${token})` : ''}`)
  return `${method} ${escapeControlChars(url)}${over}${through}\n${lines.join('\n')}\n\n${escapeUnsafe(body)}`
}

/** How curl gets to a service. */
export interface CurlWay {
  address: RemoteAddress
  /** absolute path of a file of PEM certificates */
  caCert: string | undefined
  /** milliseconds */
  timeout: number
  /** the proxy that is asked: none at all, the one in a variable that curl does not read, or the one that it finds itself */
  proxy: 'none' | 'HTTP_PROXY' | 'its own'
  /** whether that is reached by TLS, with the same certificates */
  isProxySecure: boolean
}

/**
 * The command of curl, for a POSIX shell, that sends a request. It takes the token from `$PLANTS_TOKEN`, and in no argument, which
 * others could see. Its body is the same JSON, with what could drive a terminal escaped; a path is as it is, between single quotes, in
 * which every shell leaves every character alone.
 */
export function curlCommand(request: WireRequest, way: CurlWay): string {
  const body = escapeUnsafe(request.body)
  const token = 'Authorization: Bearer'
  const url = `${/[[\]{}]/.test(request.url) ? '--globoff ' : ''}${shellWord(request.url)}`
  const lines = (header: string, data: string) => [
    `${way.proxy === 'HTTP_PROXY' ? 'http_proxy="$HTTP_PROXY" ' : ''}curl ${flagsOf(way)} -H ${header}`,
    headersOf(request),
    `--data-binary ${data}`,
    url,
  ]
  if (Buffer.byteLength(body) <= maxArgumentBytes) {
    return `printf '${token} %s' "$PLANTS_TOKEN" | ${lines('@-', shellWord(body)).join(' \\\n  ')}`
  }
  return `printf '%s' ${shellWord(body)} | ${lines('@/dev/fd/3', '@-').join(' \\\n  ')} 3<<END\n${token} $PLANTS_TOKEN\nEND`
}

/** bytes; Linux takes 131072 in an argument, and what `printf` is given is none, because it is part of the shell */
const maxArgumentBytes = 100_000

/**
 * A status from 400 on ends curl with exit code 22, and the answer is shown all the same. A redirect ends it with 47: none is followed,
 * but only where some could be does curl take one for a failure.
 */
function flagsOf({ address: { socketPath }, caCert, timeout, proxy, isProxySecure }: CurlWay): string {
  const socket = socketPath === undefined ? [] : `--unix-socket ${shellWord(socketPath)}`
  const certificates =
    caCert === undefined ? [] : [`--cacert ${shellWord(caCert)}`, isProxySecure ? `--proxy-cacert ${shellWord(caCert)}` : []].flat()
  const detour = proxy === 'none' ? "--noproxy '*'" : []
  const seconds = Math.max(timeout, 1) / 1000 // of which 0 would be no limit
  return ['-sS --fail-with-body --location --max-redirs 0', `--max-time ${seconds}`, socket, certificates, detour].flat().join(' ')
}

/** The token goes another way, and curl says itself which program it is. */
function headersOf({ headers }: WireRequest): string {
  const shown = Object.entries(headers).filter(([name]) => name !== 'authorization' && name !== 'user-agent')
  return shown.map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`).join(' ')
}
