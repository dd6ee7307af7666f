import { parseUrl } from '../../platform/urls.js'
import { createAddressError, type HttpAddress } from '../address.js'

export function parseHttp(address: string, source: string): HttpAddress {
  const url = /^https?:\/\//i.test(address) ? parseUrl(address) : undefined
  if (!url) throw createAddressError(source, 'is not a valid URL')
  if (url.username || url.password)
    throw createAddressError(
      source,
      'contains a user name or a password, but a service takes a token',
      'Put the token into PLANTS_TOKEN, or save it with: plants auth login',
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

/** The same host, port and path. An address without a port means 80 or 443, by its scheme. */
export function formatWithScheme({ url }: HttpAddress, scheme: 'http:' | 'https:'): string {
  const changed = new URL(url)
  changed.protocol = scheme // first, because a URL has no port that is the default of its scheme
  changed.port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return changed.href.replace(/\/$/, '')
}
