import { version } from '../package.json'
import { findToken, noToken } from './credentials.js'
import { PlantsError, systemCode } from './errors.js'
import { type GlobalFlags, parseText } from './flags.js'
import { readTextFile } from './input.js'
import type { Io } from './io.js'
import { warnMeanwhile } from './output.js'
import type { Settings } from './settings.js'
import type { Access, RemoteAddress } from './stores/store.js'

/**
 * What it takes to reach a remote store.
 *
 * @throws {PlantsError} `unauthorized` without a token, `malformed` where the token would be seen on its way
 */
export async function accessTo(address: RemoteAddress, flags: GlobalFlags, settings: Settings, io: Io): Promise<Access> {
  const found = await findToken(address, io)
  if (!found) throw noToken(address, settings.storeFlag)
  if (isOpenToAll(address) && !flags.allowHttp) {
    const hint = 'Use https://, or, where the network is yours alone, add --allow-http'
    throw new PlantsError('malformed', `The token is not sent to ${address.name}: without TLS others could read it`, { hint })
  }
  return {
    token: found.token,
    tokenHint:
      found.source === 'PLANTS_TOKEN'
        ? 'It came from PLANTS_TOKEN: give another one there'
        : `It was saved. Save another with: plants auth login${settings.storeFlag}`,
    userAgent: `plants/${version}`,
    ca: flags.caCert === undefined ? undefined : await readCertificates(flags.caCert, io),
    proxy: proxyFor(address, io),
    notify: (text) => warnMeanwhile(io, text, settings),
  }
}

/** A proxy is not asked about this machine: its own loopback is another one. */
function proxyFor({ url, socketPath }: RemoteAddress, io: Io): string | undefined {
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const text = variable(name, io)
  if (text === '' || socketPath !== undefined || isLoopback(url.hostname) || isExcepted(url, variable('NO_PROXY', io))) return undefined
  const proxy = text.includes('://') ? text : `http://${text}`
  if (/^https?:\/\/./i.test(proxy) && URL.canParse(proxy)) return new URL(proxy).href
  throw new PlantsError('malformed', `${name} is not the address of an http or https proxy`, {
    hint: `For example: ${name}=http://proxy.example.com:3128`,
  })
}

/** NO_PROXY as curl and undici read it: hosts and what is below them, perhaps with a port; "*" is all. */
function isExcepted({ hostname, port, protocol }: URL, noProxy: string): boolean {
  const ownPort = port || (protocol === 'https:' ? '443' : '80')
  return noProxy.split(/[,\s]+/).some((entry) => {
    const [, host = '', onlyPort] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (entry === '*') return true
    return host !== '' && (onlyPort === undefined || onlyPort === ownPort) && (hostname === host || hostname.endsWith(`.${host}`))
  })
}

function variable(name: string, { env }: Io): string {
  return env[name.toLowerCase()] || env[name] || ''
}

function isOpenToAll({ url, socketPath }: RemoteAddress): boolean {
  return url.protocol === 'http:' && socketPath === undefined && !isLoopback(url.hostname)
}

/** Whether a host is this very machine, whatever the network says. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}

async function readCertificates(path: string, { resolvePath }: Io): Promise<string> {
  const hint = 'Give a file of PEM certificates with --ca-cert'
  const text = readTextFile(resolvePath(parseText('--ca-cert', path)), hint)
  const certificates = text.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? []
  if (certificates.length === 0) throw new PlantsError('malformed', `${path} holds no PEM certificate`, { hint })
  const { X509Certificate } = await import('node:crypto')
  try {
    for (const certificate of certificates) new X509Certificate(certificate)
    return text
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    throw new PlantsError('malformed', `${path} holds a certificate that is broken`, { hint, cause: error })
  }
}
