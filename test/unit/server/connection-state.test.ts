import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { findConnectionState } from '../../../src/server/connection-state.js'

interface Failure {
  code?: string
  isOpen?: boolean
  isWritable?: boolean
  response?: ServerResponse
}

/** The state of an open connection with an error of the parser, unless it is told otherwise. */
function findState({ code = 'HPE_INVALID', isOpen = true, isWritable = true, response }: Failure) {
  const socket = new Socket()
  if (!isWritable) socket.destroy()
  return findConnectionState({ socket, code, isOpen, response }).type
}

/** The response to a request that is still being received, or is complete. */
function createResponse({ isComplete = false, hasSocket = true } = {}) {
  const request = new IncomingMessage(new Socket())
  request.complete = isComplete
  const response = new ServerResponse(request)
  if (hasSocket) response.assignSocket(request.socket)
  return response
}

function createSentResponse() {
  return createResponse().writeHead(200)
}

test.each<[string, Failure, string]>([
  ['before its TLS handshake', { isOpen: false }, 'handshake'],
  ['whose client left in the handshake', { isOpen: false, code: 'ECONNRESET' }, 'gone'],
  ['without a request', {}, 'receiving'],
  ['without a request, whose client left', { code: 'EPIPE' }, 'gone'],
  ['that cannot be written to', { isWritable: false }, 'gone'],
  ['with half of a request', { response: createResponse() }, 'receiving'],
  ['with a whole request', { response: createResponse({ isComplete: true }) }, 'responding'],
  ['with half of a request and its response', { response: createSentResponse() }, 'responding'],
  [
    'whose response has ended',
    { response: createResponse({ isComplete: true, hasSocket: false }) },
    'gone',
  ],
])('a connection %s is found to be so', (_title, failure, state) => {
  expect(findState(failure)).toBe(state)
})
