import type { Right } from '../stores/common/token-store.js'
import description from './openapi.json'

export type OperationId = 'createPlant' | 'listPlants' | 'getPlant' | 'updatePlant' | 'deletePlant'

export interface Operation {
  id: OperationId
  right: Right
  method: string
  path: string
  hasBody?: boolean
}

/** The operations of openapi.json. */
export const operations: readonly Operation[] = [
  { id: 'createPlant', right: 'create', method: 'POST', path: '/plants', hasBody: true },
  { id: 'listPlants', right: 'read', method: 'GET', path: '/plants' },
  { id: 'getPlant', right: 'read', method: 'GET', path: '/plants/{id}' },
  { id: 'updatePlant', right: 'update', method: 'PATCH', path: '/plants/{id}', hasBody: true },
  { id: 'deletePlant', right: 'delete', method: 'DELETE', path: '/plants/{id}' },
]

/**
 * The description of a service, as JSON.
 *
 * @param basePath "" or "/v1"
 * @param offered the rights whose operations it has
 */
export function openApi(basePath: string, offered: readonly Right[]): string {
  const paths: Record<string, Record<string, unknown>> = {}
  const described: Record<string, Record<string, unknown>> = description.paths
  for (const { right, method, path } of operations) {
    const name = method.toLowerCase()
    if (offered.includes(right)) paths[path] = { ...paths[path], [name]: described[path]?.[name] }
  }
  return JSON.stringify({ ...description, servers: [{ url: basePath || '/' }], paths }, null, 2)
}
