import type { ServerResponse } from 'node:http'
import { respond } from './answers.js'
import type { Metrics } from './metrics.js'
import { errorBody } from './refusal.js'
import type { Handler, Limits } from './server.js'

interface Health {
  metrics: Metrics
  /** whether a plant could be created now */
  isReady(): Promise<boolean>
}

/** What the admin port may cost: what runs a service asks once every few seconds. */
export const adminLimits: Limits = {
  headerLimit: 16_384,
  headerTimeout: 5000,
  requestTimeout: 5000,
  keepAlive: 5000,
  connectionLimit: 64,
}

/** What those who run the service look at, on a port of its own, without a token: `/live`, `/ready` and `/metrics`. */
export function adminHandler({ metrics, isReady }: Health): Handler {
  return async ({ url = '', method = '' }, response) => {
    const path = url.replace(/\?.*/s, '')
    if (!['/live', '/ready', '/metrics'].includes(path)) return send(response, 404, 'Only /live, /ready and /metrics are here')
    if (method !== 'GET' && method !== 'HEAD') return send(response, 405, `${path} takes GET and HEAD`, ['Allow', 'GET, HEAD'])
    if (path === '/metrics') {
      const { type, body } = await metrics.text()
      response.writeHead(200, { 'Content-Type': type }).end(body)
    } else if (path === '/live') respond(response, 200, '{"live":true}', [])
    else if (await isReady()) respond(response, 200, '{"ready":true}', [])
    else send(response, 503, 'The service is not ready', ['Retry-After', '1'])
  }
}

function send(response: ServerResponse, status: number, message: string, headers: string[] = []): void {
  respond(response, status, errorBody({ error: status, message }), headers)
}
