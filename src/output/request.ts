import { escapeUnsafe } from '../plant/json.js'
import { shellWord } from '../platform/errors.js'
import { escapeControlChars } from '../platform/escape.js'
import type { RemoteAddress } from '../stores/address.js'
import type { WireRequest } from '../stores/http/types.js'

/** A request for people, as HTTP writes it, with the source of the token in words. */
export function requestText({ method, url, headers, body }: WireRequest, token: string, socket?: string, proxy?: string): string {
  const over = socket === undefined ? '' : ` over the socket ${escapeControlChars(socket)}`
  const through = proxy === undefined ? '' : ` through the proxy ${proxy}`
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}${name === 'authorization' ? ` (${token})` : ''}`)
  return `${method} ${escapeControlChars(url)}${over}${through}\n${lines.join('\n')}\n\n${escapeUnsafe(body)}`
}

interface CurlOptions {
  address: RemoteAddress
  /** absolute path of a file of PEM certificates */
  caCert: string | undefined
  /** milliseconds */
  timeout: number
  /** the proxy that is used: none at all, the one in a variable that curl does not read, or the one that it finds itself */
  proxy: 'none' | 'HTTP_PROXY' | 'its own'
  isProxySecure: boolean
}

/** bytes; Linux takes 131072 in an argument, and what `printf` is given is none, because it is part of the shell */
const maxArgumentBytes = 100_000

/**
 * The command of curl, for a POSIX shell, that sends a request. It takes the token from `$PLANTS_TOKEN`, and in no argument, which
 * others could see. Its body is the same JSON, with control characters escaped; a path is as it is, between single quotes, in which every
 * shell leaves every character alone.
 */
export function curlCommand({ url, headers, body: json }: WireRequest, options: CurlOptions): string {
  const body = escapeUnsafe(json)
  const token = 'Authorization: Bearer'
  // The token has an option of its own, and curl adds its own name.
  const others = Object.entries(headers).filter(([name]) => name !== 'authorization' && name !== 'user-agent')
  const lines = (header: string, data: string) =>
    [
      `${options.proxy === 'HTTP_PROXY' ? 'http_proxy="$HTTP_PROXY" ' : ''}curl ${flagsOf(options)} -H ${header}`,
      others.map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`).join(' '),
      `--data-binary ${data}`,
      `${/[[\]{}]/.test(url) ? '--globoff ' : ''}${shellWord(url)}`,
    ].join(' \\\n  ')
  if (Buffer.byteLength(body) <= maxArgumentBytes) return `printf '${token} %s' "$PLANTS_TOKEN" | ${lines('@-', shellWord(body))}`
  return `printf '%s' ${shellWord(body)} | ${lines('@/dev/fd/3', '@-')} 3<<END\n${token} $PLANTS_TOKEN\nEND`
}

/**
 * A status from 400 on ends curl with exit code 22, and the answer is shown all the same. A redirect ends it with 47: none is followed,
 * but only where some could be does curl take one for a failure.
 */
function flagsOf({ address: { socketPath }, caCert, timeout, proxy, isProxySecure }: CurlOptions): string {
  return [
    '-sS --fail-with-body --location --max-redirs 0',
    `--max-time ${Math.max(timeout, 1) / 1000}`, // 0 would be no limit
    socketPath === undefined ? [] : `--unix-socket ${shellWord(socketPath)}`,
    caCert === undefined ? [] : `--cacert ${shellWord(caCert)}`,
    caCert !== undefined && isProxySecure ? `--proxy-cacert ${shellWord(caCert)}` : [],
    proxy === 'none' ? "--noproxy '*'" : [],
  ]
    .flat()
    .join(' ')
}
