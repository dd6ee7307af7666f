import { PlantsError } from '../../platform/errors.js'
import { isLoopback, urlOf } from '../../platform/network.js'

/** What an address leaves open, and what keeps it safe. */
export interface AddressContext {
  resolvePath(path: string): string
  /** absolute path of the folder of the store `local` */
  dataFolder(): Promise<string>
  /** libpq's variables say what the address of a database does not */
  env: Readonly<Record<string, string | undefined>>
  /** what the system calls this user, if it does */
  userName(): string | undefined
  /** takes the password of an address, which is shown nowhere */
  secrets: Set<string>
  /** whether the address was an argument: others can see those, so that no password may stand in it */
  isArgument: boolean
}

/** Where plants are kept: in a file here, in a shared database, or behind a service. */
export type Address = FileAddress | PostgresAddress | RemoteAddress

/** A store that this program opens itself, and does not ask a service for. */
export type OwnAddress = FileAddress | PostgresAddress

export interface FileAddress {
  kind: 'file'
  /** its absolute path */
  name: string
  /** whether it is the store `local`, whose folder is made when it is not there */
  isDefault: boolean
}

export interface RemoteAddress {
  kind: 'remote'
  /** the address as people write it, without a slash at its end; a token is bound to it */
  name: string
  /** the specification's base_url, without a slash at its end */
  url: URL
  /** absolute path of the Unix socket that leads there */
  socketPath?: string
}

/** A PostgreSQL database, on one server or on several of which one takes writes. */
export interface PostgresAddress {
  kind: 'postgres'
  /** the address as people write it, complete, and without a password */
  name: string
  /** the part of the name that a password belongs to: who logs in, and where */
  login: string
  /** tried in this order */
  hosts: PostgresHost[]
  user: string
  database: string
  /** one that stood in the address */
  password: string | undefined
  sslmode: (typeof sslModes)[number]
  /** absolute path of a file of PEM certificates, or "system"; the one of libpq when not given */
  sslrootcert: string | undefined
  /** absolute paths of PEM files, of a certificate that this program shows */
  sslcert: string | undefined
  sslkey: string | undefined
  /** the ways to log in that a server may ask for, as libpq's parameter has them */
  requireAuth: string | undefined
  /** the user to whom a Unix socket must belong */
  requirePeer: string | undefined
  targetSessionAttrs: (typeof sessionAttributes)[number]
  applicationName: string
  /** milliseconds that one attempt to connect may take */
  connectTimeout: number
  /** connections at most */
  max: number
}

/** A server, or with an absolute path as its host the folder of its Unix socket. */
export interface PostgresHost {
  host: string
  port: number
}

/** https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION */
export const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

/** https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS */
export const sessionAttributes = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const

/** bytes of the path of a Unix socket; the system cuts a longer one off */
export const maxSocketPathBytes = 107

/** Reads the path of an SQLite file, with or without `sqlite:`. Throws `malformed` for what belongs to another kind of store. */
export function parseFile(text: string, source: string, { resolvePath }: AddressContext): FileAddress {
  const path = text.replace(/^sqlite:/i, '')
  const isBare = path === text
  const [begin] = (isBare && /^([a-z][a-z\d+.-]*):\/\/|^(file|jdbc):/i.exec(path)) || []
  if (begin !== undefined) throw refuse(source, `begins with ${begin}, which this version cannot open`)
  refusePassword(text, source)
  if (path === '') throw refuse(source, 'is empty')
  if (/^\/\/|^:memory:$/.test(path)) throw refuse(source, `is no file: ${JSON.stringify(text)}`)
  if (!isBare || /[/\\]|^[.~]|\.(db|sqlite)$/.test(path)) return { kind: 'file', name: resolvePath(path), isDefault: false }
  // What is more than a word is not repeated: a part of it may be a password.
  if (!/^[\w-]+(\.[\w-]+)*(:\d+)?$/.test(path)) throw refuse(source, 'does not name a store')
  const scheme = isLoopback(path.replace(/:\d+$/, '')) ? 'http' : 'https'
  const hint = /[.:]/.test(path) ? `If it is a service: ${scheme}://${path}. ${addresses}` : addresses
  throw refuse(source, `does not name a store: ${JSON.stringify(path)}`, hint)
}

function refusePassword(text: string, source: string): void {
  if (shownAddress(text) !== text) throw refuse(source, 'holds what may be a password, and is the address of no store', uriHint)
}

/** Reads `http://…`, `https://…`, `unix:/path.sock` or `unix:/path.sock:/base`. Throws `malformed`, also for a password in it. */
export function parseService(text: string, source: string, { resolvePath }: AddressContext): RemoteAddress {
  const [isSocket, path = '', base = ''] = /^unix:(.*?)(?::(\/.*))?$/is.exec(text) ?? []
  if (isSocket === undefined) return parseUrl(text, source)
  refusePassword(text, source)
  if (path === '' || path.startsWith('//')) throw refuse(source, 'names no socket', 'For example: unix:/run/plants.sock')
  const { url } = parseUrl(`http://localhost${base}`, source)
  const socketPath = resolvePath(path)
  if (Buffer.byteLength(socketPath) > maxSocketPathBytes)
    throw refuse(source, `names a socket whose path is longer than ${maxSocketPathBytes} bytes`, 'Sockets need shorter ones')
  if (socketPath.includes(':/'))
    throw refuse(source, 'names a socket whose path holds ":/", where a base path would begin', 'Give it another path')
  const basePath = url.pathname.replace(/\/$/, '')
  return { kind: 'remote', name: `unix:${socketPath}${basePath && `:${basePath}`}`, url, socketPath }
}

function parseUrl(address: string, source: string): RemoteAddress {
  const url = /^https?:\/\//i.test(address) ? urlOf(address) : undefined
  if (!url) throw refuse(source, 'is not a valid URL')
  // What stands in front of an @ is a password to be, and must not be shown again.
  if (url.username || url.password) throw refuse(source, 'holds a user name or a password; a store takes a token', tokenHint)
  if (url.search || url.hash || /[?#]/.test(address)) throw refuse(source, 'is a base url, which has no "?" and no "#"')
  url.pathname = url.pathname.replace(/\/+$/, '')
  return { kind: 'remote', name: url.href.replace(/\/$/, ''), url }
}

const tokenHint = 'Put the token into PLANTS_TOKEN, or save it with: plants auth login'

const addresses = 'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'

const uriHint = 'A database is postgres://USER@HOST/DATABASE, a service is https://…, and a path with such characters begins with ./'

/** The error for an address that leads nowhere. */
export function refuse(source: string, why: string, hint = addresses): PlantsError {
  return new PlantsError('malformed', `${source} ${why}`, { hint })
}

/**
 * An address as it may be shown: `***` stands for what is a password or a token, or may be one. That holds for what is not quite an
 * address as well, such as libpq's `host=… password=…`, a URL of another kind, or one with a typing error; a plain path stays as it is.
 *
 * @param hide gets each text that `***` stands for
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

/** Of the address of a database what is no password, and can be no part of one: the user, hosts with ports, and parameters that are known. */
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
  /^(application_name|channel_binding|connect_timeout|dbname|host|max|port|require_auth|requirepeer|ssl|sslcert|sslkey|sslmode|sslrootcert|target_session_attrs|user)=/

/** Leaves out what stands between a scheme, or a first word, and the last "@", and the query of a URL. */
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

/** Whether a text is one that a token or a password is kept for, and so may be shown where a token could stand in its place. */
export function isLoginAddress(text: string): boolean {
  return /^(https?:\/\/|unix:\/|postgres:\/\/)/.test(text) && shownAddress(text) === text
}
