import { plantFields, textsInWords } from '../plant/fields.js'
import { maxSearch, type Right } from '../stores/common/store.js'

export const listLimits = { max: 1000, default: 100 }

/**
 * @param basePath "" or "/v1"
 * @returns JSON
 */
export function openApi(basePath: string, offered = operations): string {
  const paths: Record<string, Record<string, object>> = {}
  for (const { right: _, path, method, ...operation } of offered) paths[path] = { ...paths[path], [method]: operation }
  return JSON.stringify({ ...description, servers: [{ url: basePath || '/' }], paths, components }, null, 2)
}

const description = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: '1.0.0',
    summary: 'Creates plants in a store, and reads and corrects them',
    description: 'A 200 response means that the plant is on disk. A 503 response guarantees that nothing was stored.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  security: [{ bearer: [] }],
}

const string = { type: 'string' }
const text = { type: 'string', pattern: '^[^\\u0000]*$' }
const int64 = { type: 'integer', format: 'int64' }
const properties = Object.fromEntries(
  plantFields.map(({ name, type, description }) => [name, { ...(type === 'int64' ? int64 : text), description }]),
)
const { id: _, ...propertiesOfPlant } = properties
const required = plantFields.filter(({ isRequired }) => isRequired).map(({ name }) => name)

const plants = { withTag: { value: { name: 'Fern', tag: 'shade' } }, withoutTag: { value: { name: 'Moss' } } }
const storedPlants = {
  withTag: { value: { id: 1, name: 'Fern', tag: 'shade' } },
  withoutTag: { value: { id: 2, name: 'Moss' } },
}
const etag = { ETag: header('Identifies the current content of the plant, for If-Match and If-None-Match') }

const schemas = {
  Plant: { type: 'object', required: required.filter((name) => name !== 'id'), properties: propertiesOfPlant },
  NewPlant: { type: 'object', required, properties },
  StoredPlant: { type: 'object', required, properties, description: 'A plant as it is in the store' },
  Error: {
    type: 'object',
    required: ['error', 'message'],
    properties: {
      error: { type: 'integer', format: 'int32', description: 'Numeric error value' },
      message: { ...string, description: 'Error text' },
    },
  },
}

const parameters = {
  IdempotencyKey: parameter(
    'header',
    'Idempotency-Key',
    'Makes the request safe to repeat: the same key with the same NewPlant returns the first response again; with a different one, 409. The key is stored with the plant.',
    { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
    '0b8a4c1e-6e0e-4f0d-9d53-0f8a4f3c2b1a',
  ),
  Id: parameter('path', 'id', 'Decimal digits', int64, 1),
  Limit: parameter(
    'query',
    'limit',
    // No `maximum` and no `default`: they hold for pages alone, and generated clients would send them for streams.
    `The maximum number of plants. A page has at most ${listLimits.max}, by default ${listLimits.default}, ` +
      'and fewer if they are large. A stream has no maximum, and by default all plants',
    { type: 'integer', minimum: 1 },
    10,
  ),
  After: parameter('query', 'after', 'Only ids greater than this one', int64, 0),
  Tag: parameter('query', 'tag', 'Only plants with exactly this tag', text, 'shade'),
  NoTag: parameter('query', 'noTag', 'Only plants without a tag. Cannot be used with tag', { type: 'boolean' }, true),
  Search: parameter(
    'query',
    'search',
    `Only plants whose ${textsInWords} contains this text as it is, composed (NFC) or decomposed (NFD); characters match by Unicode's simple case folding`,
    { ...text, maxLength: maxSearch },
    'fern',
  ),
  IfMatch: parameter('header', 'If-Match', 'Only if the plant has one of these entity tags; * for any', string, '*'),
  IfNoneMatch: parameter(
    'header',
    'If-None-Match',
    'Only if the plant has none of these entity tags; otherwise 304 for GET, and 412',
    string,
    '"0b8a4c1e"',
  ),
}

const failures = {
  400: failure('A parameter, a header or the body is malformed'),
  401: failure('No bearer token, or one that is not accepted', { 'WWW-Authenticate': header('RFC 6750') }),
  403: failure('The token does not have the required right', {
    'WWW-Authenticate': header('RFC 6750: insufficient_scope'),
  }),
  404: failure('No plant has this id'),
  408: failure('The request did not arrive in time'),
  412: failure('The plant does not meet If-Match or If-None-Match'),
  413: failure('The body is too large'),
  415: failure('The body is not application/json'),
  422: failure('Not a Plant; the message names every field that is wrong'),
  431: failure('The headers are too large'),
  500: failure('An internal error, or a commit whose outcome is unknown'),
  503: failure('Nothing was stored. Retry later', {
    'Retry-After': { description: 'Seconds', schema: { type: 'integer' } },
  }),
}

export type OperationId = 'createPlant' | 'listPlants' | 'getPlant' | 'replacePlant' | 'deletePlant'

interface Operation {
  right: Right
  path: string
  method: 'get' | 'post' | 'put' | 'delete'
  operationId: OperationId
  requestBody?: object
  [field: string]: unknown
}

/** The service has a route for each. */
export const operations: readonly Operation[] = [
  {
    right: 'create',
    path: '/plants',
    method: 'post',
    operationId: 'createPlant',
    summary: 'Creates a new plant in the store',
    parameters: named('IdempotencyKey'),
    requestBody: body('The plant to create; at most 1 MiB by default', 'NewPlant', storedPlants),
    responses: {
      200: { description: 'Plant response', content: json('Plant', plants) },
      400: {
        description:
          'Unexpected error. `error` gives the reason: 400 malformed, 401 no valid token, 403 the token has no right to create, 409 the id exists or the key was used for a different plant, 413 too large, 415 not JSON, 422 not a NewPlant',
        headers: { 'WWW-Authenticate': header('With `error` 401 and 403') },
        content: json('Error', {
          exists: { value: { error: 409, message: 'A plant with id 1 already exists' } },
          token: { value: { error: 401, message: 'This token is not accepted' } },
        }),
      },
      ...errors(),
    },
  },
  {
    right: 'read',
    path: '/plants',
    method: 'get',
    operationId: 'listPlants',
    summary: 'Lists plants in ascending order of id',
    parameters: named('Limit', 'After', 'Tag', 'NoTag', 'Search'),
    responses: {
      200: {
        description:
          'A page of plants; with `Accept: application/x-ndjson`, a consistent snapshot of all plants, one per line',
        headers: { Link: header('RFC 8288: the next page, with rel="next", if there is one') },
        content: {
          'application/json': { schema: { type: 'array', items: reference('schemas', 'StoredPlant') } },
          'application/x-ndjson': { schema: string },
        },
      },
      ...errors(400, 401, 403),
    },
  },
  {
    right: 'read',
    path: '/plants/{id}',
    method: 'get',
    operationId: 'getPlant',
    summary: 'Returns the plant with this id',
    parameters: named('Id', 'IfNoneMatch'),
    responses: {
      200: { description: 'The plant', headers: etag, content: json('StoredPlant', storedPlants) },
      304: { description: 'The plant has one of the entity tags of If-None-Match', headers: etag },
      ...errors(400, 401, 403, 404),
    },
  },
  {
    right: 'update',
    path: '/plants/{id}',
    method: 'put',
    operationId: 'replacePlant',
    summary: 'Replaces a plant, and removes its idempotency key',
    parameters: named('Id', 'IfMatch', 'IfNoneMatch'),
    requestBody: body('The whole plant; an id, if there is one, must be that of the path', 'Plant', plants),
    responses: {
      200: { description: 'The replaced plant', headers: etag, content: json('StoredPlant', storedPlants) },
      ...errors(400, 401, 403, 404, 412, 413, 415, 422),
    },
  },
  {
    right: 'delete',
    path: '/plants/{id}',
    method: 'delete',
    operationId: 'deletePlant',
    summary: 'Deletes a plant and its idempotency key',
    parameters: named('Id', 'IfMatch', 'IfNoneMatch'),
    responses: {
      200: { description: 'The deleted plant', content: json('StoredPlant', storedPlants) },
      ...errors(400, 401, 403, 404, 412),
    },
  },
]

const components = {
  securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
  parameters,
  responses: failures,
  schemas,
}

type Examples = Record<string, { value: unknown }>

function reference(kind: keyof typeof components, name: string | number): object {
  return { $ref: `#/components/${kind}/${name}` }
}

function named(...names: (keyof typeof parameters)[]): object[] {
  return names.map((name) => reference('parameters', name))
}

/** Adds those that any request can get. */
function errors(...statuses: (keyof typeof failures)[]): Record<string, object> {
  return Object.fromEntries([...statuses, 408, 431, 500, 503].map((status) => [status, reference('responses', status)]))
}

function failure(description: string, headers: Record<string, object> = {}): object {
  return { description, headers, content: json('Error') }
}

function parameter(
  place: 'header' | 'path' | 'query',
  name: string,
  description: string,
  schema: object,
  example: unknown,
): object {
  return { name, in: place, required: place === 'path', description, schema, example }
}

function body(description: string, schema: keyof typeof schemas, examples: Examples): object {
  return { required: true, description, content: json(schema, examples) }
}

function header(description: string): object {
  return { description, schema: string }
}

function json(schema: keyof typeof schemas, examples?: Examples): object {
  return { 'application/json': { schema: reference('schemas', schema), ...(examples && { examples }) } }
}
