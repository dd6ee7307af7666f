import { parseJson } from '../../plant/exact-json.js'
import { isObject } from '../../plant/plant.js'
import type { Right } from '../common/store.js'
import type { Expected, HttpClient, HttpRequest } from './http-client.js'

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
  return { method: 'GET', path: '/openapi.json', headers, expected: expectedDescription }
}

const expectedDescription: Expected<Description> = {
  what: 'description',
  read({ status, body, maxBody }) {
    const parsed = parseJson(status === 200 && body.length <= maxBody ? body.toString() : '')
    const document = 'value' in parsed ? parsed.value : undefined // without one, only the operation of the specification
    const operations = new Set<string>()
    for (const [path, item] of Object.entries(objectOf(at(document, 'paths')))) {
      const name = path.replace(/\{[^{}/]+\}/g, '{id}')
      for (const method of Object.keys(objectOf(item))) operations.add(`${method.toUpperCase()} ${name}`)
    }
    const plants = at(document, 'paths', '/plants')
    const parameters = [at(plants, 'parameters'), at(plants, 'post', 'parameters')].filter(Array.isArray).flat()
    return { status, supportsKeys: parameters.some((parameter) => isKey(document, parameter)), operations }
  },
}

/** Whether a parameter, or its target (`$ref`), is the header of idempotency keys. */
function isKey(document: unknown, parameter: unknown): boolean {
  const path = /^#\/(?<path>components\/parameters\/\w+)$/.exec(String(at(parameter, '$ref')))?.groups?.['path']
  const { in: place, name } = objectOf(path === undefined ? parameter : at(document, ...path.split('/')))
  return place === 'header' && String(name).toLowerCase() === 'idempotency-key'
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce((object, key) => Object.getOwnPropertyDescriptor(objectOf(object), key)?.value, value)
}

function objectOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}
