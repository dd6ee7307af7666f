import { PlantsError } from '../../platform/errors.js'
import { isLoopback, urlOf } from '../../platform/network.js'

export interface AddressContext {
  resolvePath(path: string): string
  /** absolute path of the folder of the store `local` */
  dataFolder(): Promise<string>
  /** libpq's variables complete the address of a database */
  env: Readonly<Record<string, string | undefined>>
  /** the name of this user; undefined for a user id without an account */
  userName(): string | undefined
  /** collects the passwords of addresses, which are redacted */
  secrets: Set<string>
  /** whether the address is an argument, which other users can see: it must not contain a password */
  isArgument: boolean
}

export type Address = FileAddress | PostgresAddress | RemoteAddress

/** The address of a store that this program accesses directly, not through a service. */
export type OwnAddress = FileAddress | PostgresAddress

export interface FileAddress {
  scheme: 'file'
  name: string
  /** whether it is the store `local`, whose folder is created if it is missing */
  isDefault: boolean
}

export interface RemoteAddress {
  scheme: 'remote'
  /** the address as written, without a trailing slash; tokens are saved under it */
  name: string
  /** the specification's base_url, without a trailing slash */
  url: URL
  /** absolute path of the Unix socket of the service */
  socketPath?: string
}

/** A PostgreSQL database on one server, or on several of which one accepts writes. */
export interface PostgresAddress {
  scheme: 'postgres'
  /** the complete address, without the password */
  name: string
  /** the part of the name under which a password is saved: the user, the hosts and the database */
  login: string
  /** in the order in which they are tried */
  hosts: PostgresHost[]
  user: string
  database: string
  password: string | undefined
  sslmode: (typeof sslModes)[number]
  /** absolute path of a file of PEM certificates, or "system"; that of libpq if undefined */
  sslrootcert: string | undefined
  /** absolute paths of PEM files: the client certificate and its key */
  sslcert: string | undefined
  sslkey: string | undefined
  targetSessionAttrs: (typeof sessionAttributes)[number]
  applicationName: string
  /** the timeout of a connection attempt, in milliseconds */
  connectTimeout: number
  max: number
}

/** A server. An absolute path as its host is the folder of its Unix socket. */
export interface PostgresHost {
  host: string
  port: number
}

/** https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION */
export const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

/** https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS */
export const sessionAttributes = ['any', 'read-write', 'primary'] as const

/** the maximum length of the path of a Unix socket, in bytes; the system truncates a longer one */
export const maxSocketPathBytes = 107

/** Parses the path of an SQLite file, with or without `sqlite:`. Throws `malformed` for anything else. */
export function parseFile(text: string, source: string, { resolvePath }: AddressContext): FileAddress {
  const path = text.replace(/^sqlite:/i, '')
  const isBare = path === text
  const [begin] = (isBare && /^([a-z][a-z\d+.-]*):\/\/|^(file|jdbc):/i.exec(path)) || []
  if (begin !== undefined) throw refuse(source, `begins with ${begin}, which this version cannot open`)
  refusePassword(text, source)
  if (path === '') throw refuse(source, 'is empty')
  if (/^\/\/|^:memory:$/.test(path)) throw refuse(source, `is not a file: ${JSON.stringify(text)}`)
  if (!isBare || /[/\\]|^[.~]|\.(db|sqlite)$/.test(path)) return { scheme: 'file', name: resolvePath(path), isDefault: false }
  // A text that is more than a word is not shown: a part of it may be a password.
  if (!/^[\w-]+(\.[\w-]+)*(:\d+)?$/.test(path)) throw refuse(source, 'does not name a store')
  const scheme = isLoopback(path.replace(/:\d+$/, '')) ? 'http' : 'https'
  const hint = /[.:]/.test(path) ? `If it is a service: ${scheme}://${path}. ${addresses}` : addresses
  throw refuse(source, `does not name a store: ${JSON.stringify(path)}`, hint)
}

function refusePassword(text: string, source: string): void {
  if (shownAddress(text) !== text) throw refuse(source, 'is not the address of a store, and may contain a password', uriHint)
}

/** Parses `http://…`, `https://…`, `unix:/path.sock` or `unix:/path.sock:/base`. Throws `malformed`, also if it contains a password. */
export function parseService(text: string, source: string, { resolvePath }: AddressContext): RemoteAddress {
  const [isSocket, path = '', base = ''] = /^unix:(.*?)(?::(\/.*))?$/is.exec(text) ?? []
  if (isSocket === undefined) return parseUrl(text, source)
  refusePassword(text, source)
  if (process.platform === 'win32') throw refuse(source, 'names a Unix socket, which does not work on Windows', 'Use http://127.0.0.1:PORT')
  if (path === '' || path.startsWith('//')) throw refuse(source, 'does not name a socket', 'For example: unix:/run/plants.sock')
  const { url } = parseUrl(`http://localhost${base}`, source)
  const socketPath = resolvePath(path)
  if (Buffer.byteLength(socketPath) > maxSocketPathBytes)
    throw refuse(source, `has a socket path that is longer than ${maxSocketPathBytes} bytes`, 'Sockets need shorter ones')
  if (socketPath.includes(':/'))
    throw refuse(source, 'has a socket path that contains ":/", where a base path would begin', 'Give it another path')
  const basePath = url.pathname.replace(/\/$/, '')
  return { scheme: 'remote', name: `unix:${socketPath}${basePath && `:${basePath}`}`, url, socketPath }
}

function parseUrl(address: string, source: string): RemoteAddress {
  const url = /^https?:\/\//i.test(address) ? urlOf(address) : undefined
  if (!url) throw refuse(source, 'is not a valid URL')
  // The text before an @ may be meant as a password, and must not be shown.
  if (url.username || url.password) throw refuse(source, 'contains a user name or a password, but a service takes a token', tokenHint)
  if (url.search || url.hash || /[?#]/.test(address)) throw refuse(source, 'must be a base URL, without "?" and "#"')
  url.pathname = url.pathname.replace(/\/+$/, '')
  return { scheme: 'remote', name: url.href.replace(/\/$/, ''), url }
}

const tokenHint = 'Put the token into PLANTS_TOKEN, or save it with: plants auth login'

const addresses = 'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'

const uriHint = 'A database is postgres://USER@HOST/DATABASE, a service is https://…, and a path with such characters begins with ./'

export function refuse(source: string, why: string, hint = addresses): PlantsError {
  return new PlantsError('malformed', `${source} ${why}`, { hint })
}

/**
 * Redacts an address: replaces every part that is, or may be, a password or a token by `***`. This includes texts that are not valid
 * addresses, such as libpq's `host=… password=…`, a URL of another kind, or one with a typing error. Paths are not changed.
 *
 * @param hide is called with each text that is replaced
 */
export function shownAddress(text: string, hide: (secret: string) => void = () => undefined): string {
  const [, prefix = '', rest = ''] = /^(\s*(?:(?:sqlite|unix):)*)(.*)$/is.exec(text) ?? []
  const isOfWindows = process.platform === 'win32' && /^[a-z]:[\\/]/i.test(rest)
  if (isOfWindows || (/^(?:\.{0,2}[\\/](?![\\/])|~)/.test(rest) && !/:[\\/]{2}/.test(rest))) return text
  const shown = /^\s*postgres(ql)?:/i.test(text) ? shownDatabase(text, hide) : prefix + shownOther(rest, hide)
  return shown.replace(
    /((?<![a-z])(?:pg)?(?:password|passwd|pass|pwd)\s*(?:=|:|%3d)\s*)(?!\*\*\*)(.+)$/is,
    (_, name: string, value: string) => {
      hide(value)
      hide(/^'((?:\\.|[^'])*)|^\S*/s.exec(value)?.[0] ?? '')
      return `${name}***`
    },
  )
}

/** Keeps only what cannot be a part of a password: the user, the hosts with their ports, the path, and known parameters. */
function shownDatabase(address: string, hide: (secret: string) => void): string {
  const secret = (text: string) => {
    hide(text)
    return '***'
  }
  const [, scheme = '', info, rest = ''] = /^(\s*postgres(?:ql)?:\/*)(?:(.*)@)?(.*)$/is.exec(address) ?? []
  const [, hosts = '', path = '', query] = /^([^/?]*)([^?]*)(?:\?(.*))?$/s.exec(rest) ?? []
  const shownHosts = hosts
    .split(',')
    .map((host) => (/^(\[[^\]]*\]|[^:]*)(:\d*)?$/.test(host) ? host : host.replace(/:(.*)$/s, (_, text: string) => `:${secret(text)}`)))
  const user = info === undefined ? '' : `${info.replace(/(?:[:/?;]|%3a)(.*)$/is, (_, text: string) => `:${secret(text)}`)}@`
  const parameters = query?.split('&').map((part) => (harmless.test(part) ? part : secret(part.replace(/^password=/, ''))))
  return `${scheme}${user}${shownHosts.join()}${path}${parameters ? `?${parameters.join('&')}` : ''}`
}

const harmless =
  /^(application_name|channel_binding|connect_timeout|dbname|host|max|port|ssl|sslcert|sslkey|sslmode|sslrootcert|target_session_attrs|user)=/

/** Redacts the text between a scheme, or a first word, and the last "@", and the query of a URL. */
function shownOther(text: string, hide: (secret: string) => void): string {
  const [, head = '', info = '', at = '', rest = ''] = /^([^@:\\/%?]*(?::|%3a)?(?:[\\/]|%2f|%5c)*)(?:(.*)(@|%40))?(.*)$/is.exec(text) ?? []
  const isUrl = /[:%]/.test(head) || /(?:[\\/]|%2f|%5c){2}$/i.test(head)
  if (!isUrl && !/:|%3a/i.test(info)) return text
  const [, , password = info] = /^(.*?)(?::|%3a)(.*)$/is.exec(info) ?? []
  for (const secret of /[\\/]$/.test(head) ? [password] : [info, password]) hide(secret)
  const query = at === '' ? /\?(.+)$/s : /[?&](.+)$/s
  const shownRest = rest.replace(query, (_, parameters: string) => {
    for (const part of parameters.split('&')) hide(part.replace(/^[^=]*=/, ''))
    return '?***'
  })
  return `${head}${info === '' ? '' : '***'}${at}${shownRest}`
}

/** Whether a text is an address under which credentials are saved; such a text may be shown even where a token could be in its place. */
export function isLoginAddress(text: string): boolean {
  return /^(https?:\/\/|unix:\/|postgres:\/\/)/.test(text) && shownAddress(text) === text
}
