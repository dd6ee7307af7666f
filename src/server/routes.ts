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
  /** What a request takes at least: see `Admission`. */
  cost: 'expensive' | 'list' | 'small'
  /** The query may have these parameters. An operation without them ignores its query. */
  parameters?: typeof listParameters
}

/** `describe` stands for the description of the API, which needs no token. */
type Methods = Readonly<Record<string, Operation | 'describe'>>

const plantsMethods: Methods = {
  POST: { id: 'createPlant', right: 'create', hasBody: true, cost: 'small' },
  GET: { id: 'listPlants', right: 'read', parameters: listParameters, cost: 'list' },
}

/** A count has a short response, but reads as much as a list does. */
const countMethods: Methods = {
  GET: { id: 'countPlants', right: 'read', parameters: countParameters, cost: 'expensive' },
}

const plantMethods: Methods = {
  GET: { id: 'getPlant', right: 'read', cost: 'small' },
  PATCH: { id: 'updatePlant', right: 'update', hasBody: true, cost: 'small' },
  DELETE: { id: 'deletePlant', right: 'delete', cost: 'small' },
}

export interface Route {
  /** The log shows the path like this, such as `/plants/{id}`. */
  path: string
  /** This is `42` for `/plants/42`, and empty for the paths of all plants. */
  idText: string
  methods: Methods
}

/** @throws {HttpError} 404 */
export function findRoute(url: string): Route {
  const path = url.replace(/\?.*/s, '')
  if (path === '/plants') return { path, idText: '', methods: plantsMethods }
  if (path === '/plants/count') return { path, idText: '', methods: countMethods }
  if (path === '/openapi.json') return { path, idText: '', methods: { GET: 'describe' } }
  const idText = /^\/plants\/(?<id>[^/]+)$/.exec(path)?.groups?.['id']
  if (idText !== undefined) return { path: '/plants/{id}', idText, methods: plantMethods }
  throw new HttpError(404, 'There is nothing at this path. The API is described at /openapi.json')
}

/** @throws {HttpError} 405 */
export function findOperation({ path, methods }: Route, method: string): Operation | 'describe' {
  // A HEAD is a GET whose response has no body (RFC 9110, 9.3.2).
  const operation = methods[method === 'HEAD' ? 'GET' : method]
  if (operation) return operation
  const allowedMethods = Object.keys(methods)
    .flatMap((name) => (name === 'GET' ? [name, 'HEAD'] : [name]))
    .join(', ')
  throw new HttpError(405, `${path} allows ${allowedMethods}, but not ${method}`, [
    'Allow',
    allowedMethods,
  ])
}

/** The description of the API. */
export const openApiJson = JSON.stringify(openApiDocument, null, 2)
