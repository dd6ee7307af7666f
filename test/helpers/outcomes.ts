import { expect } from 'vitest'
import { exchange, type RawAnswer, type RawRequest, requestBytes } from './raw-http.js'
import { type RunningService, testToken } from './service.js'

export const patience = { timeout: 10_000, interval: 20 }
export const plant = '{"id":1,"name":"Fern"}'
export const start = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${testToken}\r\nContent-Type: application/json\r\n`
export const broken = error(400, 400, 'The request is not valid HTTP/1.1 (RFC 9112)')
export const late = error(408, 408, 'The request did not arrive in time')
export const tooManyBytes = error(431, 431, 'The headers are too large')
export const tooLarge = error(400, 413, 'The body is larger than 1048576 bytes')
export const nowhere = error(404, 404, 'There is nothing at this path. The API is described at /openapi.json')

/** What a request gets, or each of several. */
export interface Outcome {
  status: number
  body: unknown
}

/** An Error, with its status. */
export function error(status: number, value: number, message: string): Outcome {
  return { status, body: { error: value, message } }
}

/** The head of a create, with lines of its own. */
export function head(...lines: string[]): string {
  return `${start}${lines.map((line) => `${line}\r\n`).join('')}\r\n`
}

export const length = `Content-Length: ${plant.length}`
export const chunked = 'Transfer-Encoding: chunked'

/** The text of a request. */
export function requestOf(request: RawRequest): string {
  return requestBytes(testToken, request).toString('latin1')
}

/** Status and body of an answer, which must have the headers of an answer of ours. */
export function outcomeOf({ status, headers, body }: RawAnswer): Outcome {
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-content-type-options': 'nosniff' })
  return { status, body: JSON.parse(body) }
}

/** Fails unless a service answers a create. */
export async function isServed(service: RunningService): Promise<void> {
  const { status, body } = await exchange(service, {
    headers: { 'Idempotency-Key': 'still-there' },
    body: '{"id":0,"name":"Fern"}',
  })
  expect([status, body]).toEqual([200, '{"name":"Fern"}'])
}
