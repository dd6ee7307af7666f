import { createServer, type Server, type ServerResponse } from 'node:http'
import { respond } from './answers.js'
import type { Metrics } from './metrics.js'
import { errorBody } from './refusal.js'

interface Health {
  metrics: Metrics
  /** whether a plant could be created now */
  isReady(): Promise<boolean>
}

/** What those who run the service look at, on a port of its own, without a token: `/live`, `/ready` and `/metrics`. */
export function adminServer({ metrics, isReady }: Health): Server {
  return createServer({ requestTimeout: 5000, headersTimeout: 5000 }, (request, response) => {
    void answer(request.url ?? '', request.method ?? '', response)
  })

  async function answer(url: string, method: string, response: ServerResponse): Promise<void> {
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
