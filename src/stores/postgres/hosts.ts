import { existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { longestSocketPath, type PostgresHost } from '../store.js'
import type { PostgresUri, Refuse } from './uri.js'

const usualPort = '5432'
const socketFolder = '/var/run/postgresql'

/** The servers of an address, of parameters in it, of the environment, or the one that libpq has by default. */
export function hostsOf(
  { hosts, parameters }: PostgresUri,
  env: Readonly<Record<string, string | undefined>>,
  refuse: Refuse,
): PostgresHost[] {
  const named = hosts?.some(([host]) => host !== '') || (hosts?.length ?? 0) > 1 ? hosts?.map(([host]) => host) : undefined
  const numbered = hosts?.some(([, port]) => port !== undefined) || (hosts?.length ?? 0) > 1 ? hosts?.map(([, port]) => port) : undefined
  const names = parameters.get('host')?.split(',') ?? named ?? (env['PGHOST'] || usualHost()).split(',')
  const ports = parameters.get('port')?.split(',') ?? numbered ?? (env['PGPORT'] || usualPort).split(',')
  if (ports.length !== 1 && ports.length !== names.length)
    throw refuse(
      `names ${names.length} ${names.length === 1 ? 'host' : 'hosts'}, but ${ports.length} ports`,
      'Give one for all, or one for each',
    )
  return names.map((name, index) => hostFrom(name, (ports.length === 1 ? ports[0] : ports[index]) || usualPort, refuse))
}

function usualHost(): string {
  return existsSync(socketFolder) ? socketFolder : 'localhost'
}

function hostFrom(name: string, text: string, refuse: Refuse): PostgresHost {
  const port = /^\d{1,5}$/.test(text) ? parseInt(text, 10) : 0
  if (port < 1 || port > 65_535) throw refuse('names a port that is no number from 1 to 65535')
  if (name.startsWith('/')) return { host: folderFrom(name, port, refuse), port }
  if (isIPv6(name)) return { host: name.toLowerCase(), port }
  if (name === '') throw refuse('names a host that is empty')
  if (!/^[^\s:/@,%?#[\]\\]{1,255}$/.test(name)) throw refuse('names a host that is none')
  return { host: name.toLowerCase(), port }
}

function folderFrom(name: string, port: number, refuse: Refuse): string {
  const folder = name.replace(/(?<=.)\/+$/, '')
  if (Buffer.byteLength(socketPath(folder, port)) > longestSocketPath)
    throw refuse(`names a socket whose path is longer than ${longestSocketPath} bytes`, 'Sockets need shorter ones')
  return folder
}

/** The Unix socket at which a server with this port listens. */
export function socketPath(folder: string, port: number): string {
  return `${folder}/.s.PGSQL.${port}`
}

/** The hosts as they stand in an address, each with its port. */
export function hostsText(hosts: PostgresHost[]): string {
  const hostText = (host: string) => (isIPv6(host) ? `[${host.replace('%', '%25')}]` : encodeURIComponent(host))
  return hosts.map(({ host, port }) => `${hostText(host)}:${port}`).join(',')
}
