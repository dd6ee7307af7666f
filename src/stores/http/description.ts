import { parseJson } from '../../plant/json.js'
import type { Right } from '../common/store.js'
import type { Expected, HttpClient, HttpRequest } from './client.js'

export interface Description {
  status: number
  supportsKeys: boolean
  /** such as "GET /plants/{id}", regardless of how the service names the parameter */
  operations: ReadonlySet<string>
}

export const operationOf = {
  read: 'GET /plants/{id}',
  list: 'GET /plants',
  update: 'PUT /plants/{id}',
  delete: 'DELETE /plants/{id}',
} as const satisfies Partial<Record<Right | 'list', string>>

/** without the token */
export function requestToDescribe({ access }: HttpClient): HttpRequest<Description> {
  const headers = { accept: 'application/json', 'user-agent': access.userAgent }
  return { method: 'GET', path: '/openapi.json', headers, sends: 'the request for its openapi.json', expected: expectedDescription }
}

const expectedDescription: Expected<Description> = {
  what: 'description',
  read({ status, body, maxBody }) {
    const parsed = parseJson(status === 200 && body.length <= maxBody ? body.toString() : '')
    // A service without a description offers only the operation of the specification.
    return 'value' in parsed ? { ...describe(parsed.value), status } : { status, supportsKeys: false, operations: new Set() }
  },
}

function describe(document: unknown): Omit<Description, 'status'> {
  const operations = new Set<string>()
  for (const [path, item] of Object.entries(objectOf(at(document, 'paths')))) {
    const name = path.replace(/\{[^{}/]+\}/g, '{id}')
    for (const method of Object.keys(objectOf(resolve(document, item)))) operations.add(`${method.toUpperCase()} ${name}`)
  }
  const plants = resolve(document, at(document, 'paths', '/plants'))
  const parameters = [at(plants, 'parameters'), at(plants, 'post', 'parameters')].filter(Array.isArray).flat()
  const isKey = (parameter: unknown) => {
    const name = at(parameter, 'name')
    return at(parameter, 'in') === 'header' && typeof name === 'string' && name.toLowerCase() === 'idempotency-key'
  }
  return { supportsKeys: parameters.some((parameter) => isKey(resolve(document, parameter))), operations }
}

/** Resolves a `$ref` within the document (RFC 6901), one level deep. */
function resolve(document: unknown, value: unknown): unknown {
  const reference = at(value, '$ref')
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return value
  const keys = reference.slice(2).split('/')
  return at(document, ...keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~')))
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce((object, key) => Object.getOwnPropertyDescriptor(objectOf(object), key)?.value, value)
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}
