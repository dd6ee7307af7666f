import { parseUrl } from '../../platform/urls.js'
import { createAddressError, type HttpAddress } from '../address.js'
import type { StoreKind } from '../store-kind.js'

/** It finds no network risk, because `assertNotExposed` sends no token where others could read it. */
export const httpKind: StoreKind<HttpAddress> = {
  noun: 'a service',
  isDirect: false,

  matches: (text) => /^https?:/i.test(text),
  parse: async (text, source) => parseHttp(text, source),
  format: ({ name }) => name,

  async open(address, _purpose, context) {
    const access = await context.findAccess(address)
    const { HttpStore } = await import('./http-store.js')
    return new HttpStore(address, { ...context, access })
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

function parseHttp(address: string, source: string): HttpAddress {
  const url = /^https?:\/\//i.test(address) ? parseUrl(address) : undefined
  if (!url) throw createAddressError(source, 'is not a valid URL')
  if (url.username || url.password)
    throw createAddressError(
      source,
      'contains a user name or a password, but a service takes a token',
      'Leave them out of the address. Put the token into PLANTS_TOKEN, or save it: plants auth login --store ADDRESS',
    )
  if (url.search || url.hash || /[?#]/.test(address))
    throw createAddressError(
      source,
      'must be a base URL, without "?" and "#"',
      'Leave out the "?" or "#" and what follows',
    )
  url.pathname = url.pathname.replace(/\/+$/, '')
  return { scheme: 'http', name: url.href.replace(/\/$/, ''), url }
}
