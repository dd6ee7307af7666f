/** Finds the operation that a request asks for, by its path and its method. */
import type { Right } from '../stores/tokens.js'
import { HttpError } from './http-error.js'
import openApiDocument from './openapi.json'

export type OperationId =
  | 'createPlant'
  | 'listPlants'
  | 'countPlants'
  | 'getPlant'
  | 'updatePlant'
  | 'deletePlant'

type ListParameter = 'limit' | 'order' | 'after' | 'tag' | 'noTag' | 'search'

/** A count depends only on the parameters that select plants, not on an order or a page. */
const countParameters: readonly ListParameter[] = ['tag', 'noTag', 'search']
export const listParameters: readonly ListParameter[] = [
  'limit',
  'order',
  'after',
  ...countParameters,
]

export interface Operation {
  id: OperationId
  right: Right
  hasBody?: true
  /** The query may have these parameters. An operation without them ignores its query. */
  parameters?: typeof listParameters
  /** The quota of a token counts so much memory for a response. This is an estimate. */
  responseBytes: number
}

/** `describe` stands for the description of the API, which needs no token. */
type Methods = Readonly<Record<string, Operation | 'describe'>>

/**
 * This estimate for a response with one plant is a compromise. Most plants need far less. A plant
 * of 1 MiB needs more: the 16 MiB of a token admit 128 requests at a time, whose responses can then
 * take 128 MiB.
 */
const plantResponseBytes = 131_072
const listResponseBytes = 4 * 1_048_576

const plantsMethods: Methods = {
  // The response is shorter than the body of the request, for which the quota counts already.
  POST: { id: 'createPlant', right: 'create', hasBody: true, responseBytes: 0 },
  GET: {
    id: 'listPlants',
    right: 'read',
    parameters: listParameters,
    responseBytes: listResponseBytes,
  },
}

/** A count has a short response, but reads as much as a list does. */
const countMethods: Methods = {
  GET: {
    id: 'countPlants',
    right: 'read',
    parameters: countParameters,
    responseBytes: listResponseBytes,
  },
}

const plantMethods: Methods = {
  GET: { id: 'getPlant', right: 'read', responseBytes: plantResponseBytes },
  PATCH: { id: 'updatePlant', right: 'update', hasBody: true, responseBytes: plantResponseBytes },
  DELETE: { id: 'deletePlant', right: 'delete', responseBytes: plantResponseBytes },
}

export interface Route {
  /** The log shows the path like this, such as `/v1/plants/{id}`. */
  path: string
  /** This is `42` for `/plants/42`, and empty for the paths of all plants. */
  idText: string
  methods: Methods
}

/** @throws {HttpError} 404 */
export function findRoute(url: string, basePath: string): Route {
  const path = url.replace(/\?.*/s, '')
  const pathBelowBase = path.startsWith(basePath) ? path.slice(basePath.length) : ''
  if (pathBelowBase === '/plants') return { path, idText: '', methods: plantsMethods }
  if (pathBelowBase === '/plants/count') return { path, idText: '', methods: countMethods }
  if (pathBelowBase === '/openapi.json') return { path, idText: '', methods: { GET: 'describe' } }
  const idText = /^\/plants\/(?<id>[^/]+)$/.exec(pathBelowBase)?.groups?.['id']
  if (idText !== undefined)
    return { path: `${basePath}/plants/{id}`, idText, methods: plantMethods }
  const advice = `The API is described at ${basePath}/openapi.json`
  throw new HttpError(404, `There is nothing at this path. ${advice}`)
}

/** @throws {HttpError} 405 */
export function findOperation({ path, methods }: Route, method: string): Operation | 'describe' {
  // A HEAD is a GET whose response has no body (RFC 9110, 9.3.2).
  const operation = methods[method === 'HEAD' ? 'GET' : method]
  if (operation) return operation
  const allowedMethods = listAllowedMethods(methods).join(', ')
  throw new HttpError(405, `${path} allows ${allowedMethods}, but not ${method}`, [
    'Allow',
    allowedMethods,
  ])
}

function listAllowedMethods(methods: Methods): string[] {
  return Object.keys(methods).flatMap((name) => (name === 'GET' ? [name, 'HEAD'] : [name]))
}

/** Formats the OpenAPI description as JSON, with the base path of this service. */
export function formatOpenApi(basePath: string): string {
  return JSON.stringify({ ...openApiDocument, servers: [{ url: basePath || '/' }] }, null, 2)
}
