import type { Server } from 'node:http'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { toWireJson } from '../plant/json.js'
import type { PlantStore } from '../stores/store.js'
import { Answers, type Witness } from './answers.js'
import { checkLength, checkMediaType, type Load, parseKey, parsePlant, readBody } from './body.js'
import { busy, Refused, refused, refusedWith } from './errors.js'
import { type FindToken, Guard } from './guard.js'
import { openApi } from './openapi.js'

export interface AppOptions extends Witness {
  store: PlantStore
  findToken: FindToken
  /** "" or "/v1" */
  basePath: string
  /** bytes of a body */
  bodyLimit: number
  /** creates that wait for the store at most; more are sent away */
  queueLimit: number
  load: Load
  /** a word that no other run of the service has */
  runId: string
  server: Server
}

declare module 'fastify' {
  interface FastifyRequest {
    /** when it came, on the clock of the service; 0 when that is not known */
    began: number
    /** the name of the token */
    token: string | undefined
  }
}

/** The specification's operation on a store, and the description of the interface. */
export function buildApp(options: AppOptions): FastifyInstance {
  const { basePath, runId, server } = options
  const answers = new Answers(options, [`${basePath}/plants`, `${basePath}/openapi.json`])
  let count = 0
  const app = fastify({
    genReqId: () => `${runId}-${(count++).toString(36)}`,
    serverFactory: () => server,
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => (url.startsWith('/') ? url : url.replace(absoluteForm, '')),
    clientErrorHandler: () => undefined, // the server has its own
    frameworkErrors: (_, request, reply) => answers.refuse(request, reply, refused(400, 'The path of the request is not valid')),
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
  })
  app.decorateRequest('token').decorateRequest('began', 0)
  app.addHttpMethod('POST', { hasBody: false, overrideExisting: true }) // it is read by us: Fastify would look for a parser first, and in another order
  app.setErrorHandler((error, request, reply) => answers.refuse(request, reply, error))
  // Before the body: nobody has to send one to learn that nothing is there.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) answers.refuse(request, reply, unknownRoute(request, basePath))
    else done()
  })
  addCreate(app, options, answers)
  addDescription(app, basePath, answers)
  return app
}

/** milliseconds in which a body comes for which the token is not looked at again */
const atOnce = 100

/** RFC 9112, 3.2.2 */
const absoluteForm = /^https?:\/\/[^/?#]*(?=\/)/i

/** Fastify's own schemas are not used: the contract has its own words for what is wrong. */
function unused(): never {
  throw new Error('The service has no schemas of its own')
}

function addCreate(app: FastifyInstance, options: AppOptions, answers: Answers): void {
  const { basePath, findToken, store, now } = options
  const guard = new Guard(findToken, now)
  const create = async (request: FastifyRequest, reply: FastifyReply) => {
    request.began = now()
    const { raw } = request
    const { authorization, expect } = raw.headers
    const token = guard.admit(authorization, raw.socket)
    const early = typeof token === 'string' ? undefined : readBody(raw, options) // node:http would keep each of its chunks meanwhile
    try {
      request.token = typeof token === 'string' ? token : await token
      checkMediaType(raw)
      checkLength(raw, options)
    } catch (error) {
      early?.drop()
      throw error
    }
    if (expect !== undefined) raw.emit('continue')
    const bytes = await (early ?? readBody(raw, options)).read
    if (bytes instanceof Refused) throw bytes
    // While the body came, the token may have been revoked.
    if (now() - request.began > atOnce) await guard.admit(authorization, raw.socket)
    const idempotencyKey = parseKey(raw)
    const plant = parsePlant(bytes)
    const release = take(options, bytes.length)
    try {
      const created = await store.create(plant, { idempotencyKey })
      answers.send(request, reply, { outcome: 'created', status: 200, json: toWireJson(created) })
    } finally {
      release()
    }
  }
  app.post(`${basePath}/plants`, (request, reply) => {
    create(request, reply)
      .catch((error: unknown) => answers.refuse(request, reply, error))
      .catch((error: unknown) => {
        options.complain(request.id, error)
        reply.raw.destroy()
      })
  })
}

/**
 * @returns what gives back what was taken
 * @throws {Refused} with `error` 503 when too many creates wait
 */
function take({ load, queueLimit }: AppOptions, bytes: number): () => void {
  if (load.creates >= queueLimit) throw busy()
  load.creates += 1
  load.bytes += bytes
  return () => {
    load.creates -= 1
    load.bytes -= bytes
  }
}

function addDescription(app: FastifyInstance, basePath: string, answers: Answers): void {
  const json = Buffer.from(openApi(basePath)) // one for all answers
  app.get(`${basePath}/openapi.json`, (request, reply) => answers.send(request, reply, { outcome: 'described', status: 200, json }))
}

function unknownRoute({ url, method }: FastifyRequest, basePath: string): Refused {
  const path = decodeURIComponent(url.replace(/[?#].*/s, '')) // what cannot be decoded has not come this far
  if (path === `${basePath}/plants`) return notAllowed('POST', path, method)
  if (path === `${basePath}/openapi.json`) return notAllowed('GET, HEAD', path, method)
  return refusedWith(404, `Nothing is at this path. A plant is created with POST ${basePath}/plants`)
}

function notAllowed(allowed: string, path: string, method: string): Refused {
  return refusedWith(405, `${path} takes ${allowed}, but not ${method}`, { Allow: allowed })
}
