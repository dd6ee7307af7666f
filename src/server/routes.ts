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

/** Those that select plants, whatever their order is. */
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
  /** Those of its query. An operation without them ignores its query. */
  parameters?: typeof listParameters
  /** The memory that a response to it is taken to need. */
  responseBytes: number
}

type Methods = Readonly<Record<string, Operation | 'describe'>>

/**
 * The memory that a response with one plant is taken to need. Most need far less. A plant of 1 MiB
 * needs more: the 16 MiB of a token admit 128 of these at a time, which are 128 MiB.
 */
const plantBytes = 131_072
const listBytes = 4 * 1_048_576

const plants: Methods = {
  // Its response is shorter than its body.
  POST: { id: 'createPlant', right: 'create', hasBody: true, responseBytes: 0 },
  GET: { id: 'listPlants', right: 'read', parameters: listParameters, responseBytes: listBytes },
}

/** It reads as much as a list does, although its response is short. */
const count: Methods = {
  GET: { id: 'countPlants', right: 'read', parameters: countParameters, responseBytes: listBytes },
}

const plant: Methods = {
  GET: { id: 'getPlant', right: 'read', responseBytes: plantBytes },
  PATCH: { id: 'updatePlant', right: 'update', hasBody: true, responseBytes: plantBytes },
  DELETE: { id: 'deletePlant', right: 'delete', responseBytes: plantBytes },
}

export interface Route {
  /** The path as the log shows it, such as `/v1/plants/{id}`. */
  path: string
  /** The last segment of the requested path if it is that of a plant, otherwise empty. */
  idText: string
  methods: Methods
}

/** @throws {HttpError} 404 */
export function findRoute(url: string, basePath: string): Route {
  const path = url.replace(/\?.*/s, '')
  const below = path.startsWith(basePath) ? path.slice(basePath.length) : ''
  if (below === '/plants') return { path, idText: '', methods: plants }
  if (below === '/plants/count') return { path, idText: '', methods: count }
  if (below === '/openapi.json') return { path, idText: '', methods: { GET: 'describe' } }
  const idText = /^\/plants\/(?<id>[^/]+)$/.exec(below)?.groups?.['id']
  if (idText !== undefined) return { path: `${basePath}/plants/{id}`, idText, methods: plant }
  const where = `The API is described at ${basePath}/openapi.json`
  throw new HttpError(404, `There is nothing at this path. ${where}`)
}

/** @throws {HttpError} 405 */
export function findOperation({ path, methods }: Route, method: string): Operation | 'describe' {
  // A HEAD is a GET whose response has no body (RFC 9110, 9.3.2).
  const operation = methods[method === 'HEAD' ? 'GET' : method]
  if (operation) return operation
  const allowed = listAllowed(methods).join(', ')
  throw new HttpError(405, `${path} allows ${allowed}, but not ${method}`, ['Allow', allowed])
}

function listAllowed(methods: Methods): string[] {
  return Object.keys(methods).flatMap((name) => (name === 'GET' ? [name, 'HEAD'] : [name]))
}

/** Formats the description of a service as JSON. */
export function formatOpenApi(basePath: string): string {
  return JSON.stringify({ ...openApiDocument, servers: [{ url: basePath || '/' }] }, null, 2)
}
