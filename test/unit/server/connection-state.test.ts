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

test.each<{ connection: string; failure: Failure; state: string }>([
  { connection: 'before its TLS handshake', failure: { isOpen: false }, state: 'handshake' },
  {
    connection: 'whose client left in the handshake',
    failure: { isOpen: false, code: 'ECONNRESET' },
    state: 'gone',
  },
  { connection: 'without a request', failure: {}, state: 'receiving' },
  { connection: 'without a request, whose client left', failure: { code: 'EPIPE' }, state: 'gone' },
  { connection: 'that cannot be written to', failure: { isWritable: false }, state: 'gone' },
  {
    connection: 'with half of a request',
    failure: { response: createResponse() },
    state: 'receiving',
  },
  {
    connection: 'with a whole request',
    failure: { response: createResponse({ isComplete: true }) },
    state: 'responding',
  },
  {
    connection: 'with half of a request and its response',
    failure: { response: createSentResponse() },
    state: 'responding',
  },
  {
    connection: 'whose response has ended',
    failure: { response: createResponse({ isComplete: true, hasSocket: false }) },
    state: 'gone',
  },
])('a connection $connection has the state $state', ({ failure, state }) => {
  expect(findState(failure)).toBe(state)
})
