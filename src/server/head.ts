import type { IncomingMessage } from 'node:http'
import { notHttp, type Refused, refused } from './refusal.js'

/** What node:http lets through: a version that it does not speak, no Host, and what must stand there once (RFC 9110, 5.3 and 7.2). */
export function headFailure({ rawHeaders, headers, httpVersion }: IncomingMessage): Refused | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refused(400, `HTTP/${httpVersion} is not spoken here, only HTTP/1.1`)
  let seen = 0 // a bit for each of the singles
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const bit = 1 << (singles.get(name) ?? singles.get(name.toLowerCase()) ?? 0)
    if (bit > 1 && (seen & bit) > 0) return refused(400, bit === lengthBit ? notHttp : `The header ${name} must be given once`)
    seen |= bit
  }
  if (!isKnownCoding(headers['transfer-encoding'], httpVersion)) return refused(400, notHttp)
  return (seen & hostBit) > 0 || httpVersion === '1.0' ? undefined : refused(400, 'The header Host is missing')
}

/** RFC 9112, 6.1: no other coding is decoded here, and HTTP/1.0 has none, so that a proxy in front may have read it in another way. */
function isKnownCoding(coding: string | undefined, httpVersion: string): boolean {
  return coding === undefined || (httpVersion === '1.1' && coding.toLowerCase() === 'chunked')
}

const singles = new Map([
  ['host', 1],
  ['Host', 1], // as most write it, which saves the lower case
  ['content-type', 2],
  ['content-encoding', 3],
  ['authorization', 4],
  ['transfer-encoding', 6],
  ['content-length', 5], // which the parser of Node refuses, and that of Bun takes where both are the same
])
const hostBit = 1 << 1
const lengthBit = 1 << 5
