import type { Server } from 'node:http'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify, LogController } from 'fastify'
import { systemCode } from '../errors.js'
import { toJson } from '../json.js'
import type { PlantStore } from '../stores/store.js'
import { checkMediaType, parseKey, parsePlant, readBody } from './body.js'
import { authenticate, type FindToken } from './guard.js'
import { openApi } from './openapi.js'
import { comeAgain, errorBody, type Refusal, type Refused, refusalOf, refused, refusedWith } from './refusal.js'

/** What an exchange was about, for the log and the metrics; never a token, never a body. */
export interface Exchange {
  requestId?: string
  status?: number
  /** "created", or the `error` value of a refusal */
  outcome: string
  milliseconds?: number
  /** the name of the token */
  token?: string | undefined
  /** what the parser of node:http says of a request that it refused */
  code?: string
}

export interface AppOptions {
  store: PlantStore
  findToken: FindToken
  /** "" or "/v1" */
  basePath: string
  /** bytes of a body */
  bodyLimit: number
  /** creates that wait for the store at most; more are sent away */
  queueLimit: number
  queue: { waiting: number }
  /** a word that no other run of the service has */
  runId: string
  logger: { level: string; stream: { write(line: string): void } }
  record(exchange: Exchange): void
  server: Server
}

declare module 'fastify' {
  interface FastifyRequest {
    token: string | undefined
    outcome: string
  }
}

/** The specification's operation on a store, and the description of the interface. */
export function buildApp(options: AppOptions): FastifyInstance {
  const { basePath, runId, logger, record, server } = options
  let count = 0
  const app = fastify({
    logger,
    childLoggerFactory: (parent) => parent,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => `${runId}-${(count++).toString(36)}`,
    serverFactory: () => server,
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => (url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*(?=\/)/i, '')), // RFC 9112, 3.2.2: the absolute form
    frameworkErrors: (_, request, reply) => refuse(request, reply, refused(400, 'The path of the request is not valid').refusal),
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
  })
  app.decorateRequest('token').decorateRequest('outcome', '')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _, done) => readBody(request.raw, options.bodyLimit, done))
  app.addHook('onRequest', (request, _, done) => done(hostFailure(request)))
  app.addHook('onResponse', (request, reply, done) => {
    const { id: requestId, outcome, token } = request
    record({ requestId, status: reply.statusCode, outcome, milliseconds: Math.round(reply.elapsedTime * 1000) / 1000, token })
    done()
  })
  app.addHook('onRequestAbort', ({ id: requestId, token }, done) => {
    record({ requestId, outcome: 'aborted', token })
    done()
  })
  app.setErrorHandler((error: Error, request, reply) => {
    const failure = systemCode(error) === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? refused(415, 'Content-Type must be application/json') : error
    const refusal = refusalOf(failure, request.id)
    if (refusal.status >= 500) app.log.error({ requestId: request.id, err: error }, 'failed')
    return refuse(request, reply, refusal)
  })
  app.setNotFoundHandler((request, reply) => refuse(request, reply, refusalOf(unknownRoute(request, basePath), request.id)))
  addCreate(app, options)
  addDescription(app, basePath)
  return app
}

/** Fastify's own schemas are not used: the contract has its own words for what is wrong. */
function unused(): never {
  throw new Error('The service has no schemas of its own')
}

function addCreate(app: FastifyInstance, { basePath, findToken, store, queue, queueLimit }: AppOptions): void {
  const guard = async (request: FastifyRequest) => {
    const name = authenticate(request.headers.authorization, findToken)
    request.token = typeof name === 'string' ? name : await name
    checkMediaType(request.raw)
  }
  app.post<{ Body: Buffer }>(`${basePath}/plants`, { onRequest: guard }, async (request, reply) => {
    const plant = parsePlant(request.body)
    const idempotencyKey = parseKey(request.raw)
    if (queue.waiting >= queueLimit) throw refusedWith(503, 'The service is busy, and nothing was stored', comeAgain)
    queue.waiting += 1
    try {
      const created = await store.create(plant, { idempotencyKey })
      request.outcome = 'created'
      return answer(request, reply, toJson({ ...created }))
    } finally {
      queue.waiting -= 1
    }
  })
}

function addDescription(app: FastifyInstance, basePath: string): void {
  const description = openApi(basePath)
  app.get(`${basePath}/openapi.json`, (request, reply) => {
    request.outcome = 'described'
    return answer(request, reply, description)
  })
}

/** Sends JSON. As bytes, because Fastify gives a text a charset, which JSON does not have (RFC 8259, 11). */
function answer(request: FastifyRequest, reply: FastifyReply, json: string): FastifyReply {
  return reply
    .header('Content-Type', 'application/json')
    .header('X-Content-Type-Options', 'nosniff')
    .header('Request-Id', request.id)
    .send(Buffer.from(json))
}

function refuse(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply {
  request.outcome = String(refusal.error)
  return answer(request, reply.code(refusal.status).headers(refusal.headers ?? {}), errorBody(refusal))
}

/** What node:http lets through (RFC 9112, 3.2): no Host, or two of them. */
function hostFailure({ raw }: FastifyRequest): Refused | undefined {
  const { rawHeaders, httpVersion } = raw
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  if (hosts === 1 || (hosts === 0 && httpVersion === '1.0')) return undefined
  return refused(400, `The request must have one Host header, but had ${hosts}`)
}

function unknownRoute({ url, method }: FastifyRequest, basePath: string): Refused {
  const path = url.replace(/[?#].*/s, '')
  if (path === `${basePath}/plants`) return notAllowed('POST', path, method)
  if (path === `${basePath}/openapi.json`) return notAllowed('GET, HEAD', path, method)
  return refusedWith(404, `Nothing is at this path. A plant is created with POST ${basePath}/plants`)
}

function notAllowed(allowed: string, path: string, method: string): Refused {
  return refusedWith(405, `${path} takes ${allowed}, but not ${method}`, { Allow: allowed })
}
