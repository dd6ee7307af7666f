import { expect } from 'vitest'
import { exchange, type RawRequest } from './raw-http.js'
import type { RunningService } from './service.js'

export const common = { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' }
export const planted = { status: 200, body: '{"name":"Fern"}', headers: common }

/**
 * An answer by what the contract says of it: a body of JSON is parsed, unless it is a Plant's, which is held to the
 * letter.
 */
export async function answerTo(service: Pick<RunningService, 'place' | 'token'>, request: RawRequest) {
  const { status, headers, body } = await exchange(service, request)
  expect(headers['request-id']).toMatch(/^[\da-f]{8}-[\da-z]+$/)
  const { connection: _, date: __, 'content-length': ___, 'keep-alive': ____, 'request-id': _____, ...others } = headers
  return { status, body: status === 200 || body === '' ? body : (JSON.parse(body) as unknown), headers: others }
}
