import type { HttpAddress } from '../address.js'
import type { StoreKind } from '../store-kind.js'
import { parseHttp } from './address.js'

/** It finds no network risk, because `assertNotExposed` sends no token where others could read it. */
export const httpKind: StoreKind<HttpAddress> = {
  noun: 'a service',
  isDirect: false,

  matches: (text) => /^https?:/i.test(text),
  parse: async (text, source) => parseHttp(text, source),
  format: ({ name }) => name,

  async open(address, _purpose, context) {
    const { timeoutMs, runtime, retryMs } = context
    const access = await context.findAccess(address)
    const { HttpStore } = await import('./http-store.js')
    return new HttpStore(address, { access, timeoutMs, runtime, retryMs })
  },
  async *diagnose(address, context) {
    yield await (await import('./check-token.js')).diagnoseService(address, context)
  },
  token: {
    getTarget: (address) => address,
    verify: async (address, context) =>
      (await import('./check-token.js')).verifyToken(address, context),
  },
}
