import { escapeUnsafe } from '../plant/json.js'
import { posixWord } from '../platform/errors.js'
import { escapeControlChars } from '../platform/escape.js'
import type { WireRequest } from '../stores/common/access.js'
import type { RemoteAddress } from '../stores/common/address.js'

/** A request in HTTP's notation, with the source of the token in parentheses. */
export function requestText({ method, url, headers, body }: WireRequest, token: string, socket?: string, proxy?: string): string {
  const over = socket === undefined ? '' : ` over the socket ${escapeControlChars(socket)}`
  const through = proxy === undefined ? '' : ` through the proxy ${proxy}`
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}${name === 'authorization' ? ` (${token})` : ''}`)
  return `${method} ${escapeControlChars(url)}${over}${through}\n${lines.join('\n')}\n\n${escapeUnsafe(body)}`
}

interface CurlOptions {
  address: RemoteAddress
  /** the absolute path of a file of PEM certificates */
  caCert: string | undefined
  /** milliseconds */
  timeout: number
  /** the proxy that is used: none; the one in `HTTP_PROXY`, which curl does not read; or the one that curl finds itself */
  proxy: 'none' | 'HTTP_PROXY' | 'its own'
  isProxySecure: boolean
}

/** Linux limits an argument to 131072 bytes. `printf` is a builtin of the shell, so the limit does not apply to it. */
const maxArgumentBytes = 100_000

/**
 * The curl command that sends a request, for a POSIX shell. It reads the token from `$PLANTS_TOKEN`, so that the token is in no argument,
 * where other users could see it. The body is the same JSON with control characters escaped. Paths are in single quotes.
 */
export function curlCommand({ url, headers, body: json }: WireRequest, options: CurlOptions): string {
  const body = escapeUnsafe(json)
  const token = 'Authorization: Bearer'
  // The token is passed separately, and curl sends its own User-Agent.
  const others = Object.entries(headers).filter(([name]) => name !== 'authorization' && name !== 'user-agent')
  const lines = (header: string, data: string) =>
    [
      `${options.proxy === 'HTTP_PROXY' ? 'http_proxy="$HTTP_PROXY" ' : ''}curl ${flagsOf(options)} -H ${header}`,
      others.map(([name, value]) => `-H ${posixWord(`${name}: ${value}`)}`).join(' '),
      `--data-binary ${data}`,
      `${/[[\]{}]/.test(url) ? '--globoff ' : ''}${posixWord(url)}`,
    ].join(' \\\n  ')
  if (Buffer.byteLength(body) <= maxArgumentBytes) return `printf '${token} %s' "$PLANTS_TOKEN" | ${lines('@-', posixWord(body))}`
  return `printf '%s' ${posixWord(body)} | ${lines('@/dev/fd/3', '@-')} 3<<END\n${token} $PLANTS_TOKEN\nEND`
}

/**
 * curl prints the response and exits with 22 for a status of 400 or more, and exits with 47 for a redirect. It follows none, but without
 * `--location` it would exit with 0.
 */
function flagsOf({ address: { socketPath }, caCert, timeout, proxy, isProxySecure }: CurlOptions): string {
  return [
    '-sS --fail-with-body --location --max-redirs 0',
    `--max-time ${Math.max(timeout, 1) / 1000}`, // 0 would be no limit
    socketPath === undefined ? [] : `--unix-socket ${posixWord(socketPath)}`,
    caCert === undefined ? [] : `--cacert ${posixWord(caCert)}`,
    caCert !== undefined && isProxySecure ? `--proxy-cacert ${posixWord(caCert)}` : [],
    proxy === 'none' ? "--noproxy '*'" : [],
  ]
    .flat()
    .join(' ')
}
