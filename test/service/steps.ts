import { expect } from 'vitest'
import { buildRequest, exchangeOnce, type RawRequest } from '../helpers/scripted-server/raw-http.js'
import { testToken } from '../helpers/scripted-server/service.js'

export const fern = '{"id":1,"name":"Fern"}'
export const createBytes = buildRequest(testToken, { body: fern })
/** The service responds 404 to this request, without a token. */
export const getBytes = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
export const listRequest: RawRequest = { method: 'GET' }

const descriptionRequest: RawRequest = {
  method: 'GET',
  target: '/openapi.json',
  headers: { Authorization: undefined },
}

/**
 * Runs twenty iterations of the event loop of a service in this process, so that everything has
 * happened that needs no other event.
 */
export async function runIterations(service: Parameters<typeof exchangeOnce>[0]): Promise<void> {
  for (let count = 0; count < 20; count += 1)
    expect((await exchangeOnce(service, descriptionRequest)).status).toBe(200)
}

/** Counts the iterations of the event loop until the returned function is called. */
export function countIterations(): () => number {
  let count = 0
  let isOver = false
  const iterate = () => {
    count += 1
    if (!isOver) setImmediate(iterate)
  }
  setImmediate(iterate)
  return () => {
    isOver = true
    return count
  }
}
