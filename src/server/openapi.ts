import { plantFields } from '../plant/fields.js'

/**
 * The description of the interface, OpenAPI 3.1: the specification's operation, and what the contract adds to it.
 *
 * @param basePath "" or "/v1"
 * @returns JSON
 */
export function openApi(basePath: string): string {
  return JSON.stringify({ ...description, servers: [{ url: basePath || '/' }] }, null, 2)
}

const text = { type: 'string', pattern: '^[^\\u0000]*$' }
const properties = Object.fromEntries(
  plantFields.map(({ name, type, description }) => [
    name,
    type === 'int64' ? { type: 'integer', format: 'int64', description } : { ...text, description },
  ]),
)
const { id: _, ...propertiesOfPlant } = properties
const required = plantFields.filter(({ isRequired }) => isRequired).map(({ name }) => name)

const description = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: '1.0.0',
    summary: 'Creates plants in a store',
    description: 'A 200 response means that the plant is on disk. A 503 response guarantees that nothing was stored.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  security: [{ bearer: [] }],
  paths: {
    '/plants': {
      post: {
        operationId: 'createPlant',
        summary: 'Creates a new plant in the store',
        parameters: [{ $ref: '#/components/parameters/IdempotencyKey' }],
        requestBody: {
          required: true,
          description: 'The plant to create; at most 1 MiB by default',
          content: {
            'application/json': {
              schema: { $ref: '#/components/schemas/NewPlant' },
              examples: {
                withTag: { summary: 'With a tag', value: { id: 1, name: 'Fern', tag: 'shade' } },
                withoutTag: { summary: 'Without a tag', value: { id: 2, name: 'Moss' } },
              },
            },
          },
        },
        responses: {
          200: {
            description: 'Plant response',
            content: {
              'application/json': {
                schema: { $ref: '#/components/schemas/Plant' },
                examples: { withTag: { value: { name: 'Fern', tag: 'shade' } }, withoutTag: { value: { name: 'Moss' } } },
              },
            },
          },
          400: {
            description:
              'Unexpected error. `error` gives the reason: 400 malformed, 401 no valid token, 409 the id exists or the key was used for a different plant, 413 too large, 415 not JSON, 422 not a NewPlant',
            headers: { 'WWW-Authenticate': { description: 'With `error` 401', schema: { type: 'string' } } },
            content: json('Error', {
              exists: { value: { error: 409, message: 'A plant with id 1 already exists' } },
              token: { value: { error: 401, message: 'This token is not accepted' } },
            }),
          },
          408: { description: 'The request did not arrive in time', content: json('Error') },
          431: { description: 'The headers are too large', content: json('Error') },
          500: { description: 'An internal error, or a commit whose outcome is unknown', content: json('Error') },
          503: {
            description: 'Nothing was stored. Retry later',
            headers: { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } },
            content: json('Error'),
          },
        },
      },
    },
  },
  components: {
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    parameters: {
      IdempotencyKey: {
        name: 'Idempotency-Key',
        in: 'header',
        required: false,
        description:
          'Makes the request safe to repeat: the same key with the same NewPlant gets the first response again, with a different one 409. It is kept with the plant.',
        schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
        example: '0b8a4c1e-6e0e-4f0d-9d53-0f8a4f3c2b1a',
      },
    },
    schemas: {
      Plant: { type: 'object', required: required.filter((name) => name !== 'id'), properties: propertiesOfPlant },
      NewPlant: { type: 'object', required, properties },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: {
          error: { type: 'integer', format: 'int32', description: 'Numeric error value' },
          message: { type: 'string', description: 'Error text' },
        },
      },
    },
  },
}

function json(schema: string, examples?: Record<string, unknown>): Record<string, unknown> {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, ...(examples && { examples }) } }
}
