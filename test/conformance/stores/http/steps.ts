import type { ServiceAccess } from '../../../../src/stores/credentials.js'
import type { HttpOptions } from '../../../../src/stores/http/http-options.js'
import { HttpStore } from '../../../../src/stores/http/http-store.js'
import { parseAddress } from '../../../../src/stores/kinds.js'
import { addDefaults, runPlants } from '../../../helpers/sandbox/run.js'
import {
  buildSqliteOptions,
  closeAfterTest,
  createAddressContext,
} from '../../../helpers/sandbox/store.js'
import type { ScriptedServer } from '../../../helpers/scripted-server/scripted-server.js'
import { token } from '../../../helpers/scripted-server/service.js'

export const created = {
  code: 0,
  out: '{"name":"Fern"}\n',
  /** the lines on stderr; the service's own address is URL in them, and the idempotency key KEY */
  said: [] as unknown[],
  requests: ['POST /plants'],
}

/** Creates plant 1, Fern, at a service; every request for it must have one and the same key. */
export async function createAt(
  service: ScriptedServer,
  flags?: string[],
  env?: Record<string, string>,
  now?: () => number,
): Promise<typeof created> {
  const { code, out, err } = await createIn(service.url, flags, env, now)
  const keys = new Set(service.keys)
  if (keys.size > 1 || keys.has(undefined)) throw new Error(`The keys were ${service.keys}`)
  return { code, out, said: linesOf(err, service), requests: service.lines }
}

/** Creates plant 1, Fern, in a store, which a flag may name instead. Its clock stands still. */
export function createIn(
  store: string,
  flags: string[] = [],
  env: Record<string, string> = {},
  now = () => 0,
) {
  const plant = { '--id': '1', '--name': 'Fern' }
  const usual = { ...plant, '--output': 'json', '--timeout': '1h', '--store': store }
  return runPlants(addDefaults(usual, ['create', ...flags]), {
    env: { PLANTS_TOKEN: token, ...env },
    now,
  })
}

export function linesOf(err: string, service: ScriptedServer): unknown[] {
  const general = err.replaceAll(service.keys[0] ?? 'no key', 'KEY').replaceAll(service.url, 'URL')
  const lines = general.split('\n').filter((line) => line !== '')
  return lines.map((line): unknown => (line.startsWith('{') ? JSON.parse(line) : line))
}

export async function openHttp(
  url: string,
  options: Partial<HttpOptions> = {},
  given: Partial<ServiceAccess> = {},
): Promise<HttpStore> {
  const address = await parseAddress(url, 'test', createAddressContext())
  if (address.scheme !== 'http') throw new Error(`${url} is no service`)
  const none = { ca: undefined, proxy: undefined, tokenHint: '', notify: async () => {} }
  const access = { token, userAgent: 'test', ...none, ...given }
  return closeAfterTest(new HttpStore(address, { ...buildSqliteOptions(), access, ...options }))
}
