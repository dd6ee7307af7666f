import { isWindows, malformed, type PlantsError } from '../../platform/errors.js'
import { urlOf } from '../../platform/network.js'

export interface AddressContext {
  resolvePath(path: string): string
  /** absolute path of the folder of the store `local` */
  dataFolder(): Promise<string>
  /** libpq's variables complete the address of a database */
  env: Readonly<Record<string, string | undefined>>
  /** undefined for a user id without an account */
  userName(): string | undefined
  /** collects the passwords of addresses, which are redacted */
  secrets: Set<string>
  /** an argument, which other users can see, must not contain a password */
  isArgument: boolean
}

export type Address = FileAddress | PostgresAddress | RemoteAddress

/** This program accesses the store directly, not through a service. */
export type OwnAddress = FileAddress | PostgresAddress

export interface FileAddress {
  scheme: 'file'
  name: string
  /** the store `local`, whose folder is created if it is missing */
  isDefault: boolean
}

export interface RemoteAddress {
  scheme: 'remote'
  /** the address as written, without a trailing slash; tokens are saved under it */
  name: string
  /** the specification's base_url, without a trailing slash */
  url: URL
  /** absolute path of a Unix socket */
  socketPath?: string
}

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
  /** milliseconds */
  connectTimeout: number
  max: number
}

/** An absolute path as the host is the folder of a Unix socket. */
export interface PostgresHost {
  host: string
  port: number
}

/** https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION */
export const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

export const sessionAttributes = ['any', 'read-write', 'primary'] as const

/** the system truncates a longer path */
export const maxSocketPathBytes = 107

/** With or without `sqlite:`. */
export function parseFile(text: string, source: string, { resolvePath }: AddressContext): FileAddress {
  const path = text.replace(/^sqlite:/i, '')
  const isBare = path === text
  if (path === '') throw addressError(source, 'is empty')
  if (/^\/\/|^:memory:$/.test(path) || (isBare && /^(?:[a-z][a-z\d+.-]*:\/\/|file:|jdbc:)/i.test(path)))
    throw addressError(source, 'does not name a store')
  assertNoPassword(text, source)
  if (!isBare || /[/\\]|^[.~]|\.(db|sqlite)$/.test(path))
    return { scheme: 'file', name: resolvePath(path), isDefault: false }
  // A text that is more than a word is not shown: a part of it may be a password.
  const shown = /^[\w-]+(\.[\w-]+)*(:\d+)?$/.test(path) ? `: ${JSON.stringify(path)}` : ''
  throw addressError(source, `does not name a store${shown}`)
}

function assertNoPassword(text: string, source: string): void {
  if (shownAddress(text) !== text)
    throw addressError(source, 'is not the address of a store, and may contain a password', uriHint)
}

/** `http://…`, `https://…`, `unix:/path.sock` or `unix:/path.sock:/base` */
export function parseService(text: string, source: string, { resolvePath }: AddressContext): RemoteAddress {
  const [isSocket, path = '', base = ''] = /^unix:(.*?)(?::(\/.*))?$/is.exec(text) ?? []
  if (isSocket === undefined) return parseUrl(text, source)
  assertNoPassword(text, source)
  if (isWindows)
    throw addressError(source, 'names a Unix socket, which does not work on Windows', 'Use http://127.0.0.1:PORT')
  if (path === '' || path.startsWith('//'))
    throw addressError(source, 'does not name a socket', 'For example: unix:/run/plants.sock')
  const { url } = parseUrl(`http://localhost${base}`, source)
  const socketPath = resolvePath(path)
  assertShort(socketPath, source)
  const why = 'has a socket path that contains ":/", where a base path would begin'
  if (socketPath.includes(':/')) throw addressError(source, why, 'Give it another path')
  const basePath = url.pathname.replace(/\/$/, '')
  return { scheme: 'remote', name: `unix:${socketPath}${basePath && `:${basePath}`}`, url, socketPath }
}

export function assertShort(socketPath: string, source: string): void {
  if (Buffer.byteLength(socketPath) <= maxSocketPathBytes) return
  const why = `has a socket path that is longer than ${maxSocketPathBytes} bytes`
  throw addressError(source, why, 'Sockets need shorter ones')
}

function parseUrl(address: string, source: string): RemoteAddress {
  const url = /^https?:\/\//i.test(address) ? urlOf(address) : undefined
  if (!url) throw addressError(source, 'is not a valid URL')
  // The text before an @ may be meant as a password, and must not be shown.
  if (url.username || url.password)
    throw addressError(source, 'contains a user name or a password, but a service takes a token', tokenHint)
  if (url.search || url.hash || /[?#]/.test(address))
    throw addressError(source, 'must be a base URL, without "?" and "#"')
  url.pathname = url.pathname.replace(/\/+$/, '')
  return { scheme: 'remote', name: url.href.replace(/\/$/, ''), url }
}

const tokenHint = 'Put the token into PLANTS_TOKEN, or save it with: plants auth login'

const addresses =
  'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'

const uriHint =
  'A database is postgres://USER@HOST/DATABASE, a service is https://…, and a path with such characters begins with ./'

export function addressError(source: string, why: string, hint = addresses): PlantsError {
  return malformed(`${source} ${why}`, hint)
}

/**
 * Replaces every part of a text that is, or may be, a password or a token by `***`, also if it is no valid address,
 * such as libpq's `host=… password=…` or one with a typing error. Paths are not changed.
 *
 * @param hide is called with each text that is replaced
 */
export function shownAddress(text: string, hide: (secret: string) => void = () => undefined): string {
  const [, prefix = '', rest = ''] = /^(\s*(?:(?:sqlite|unix):)*)(.*)$/is.exec(text) ?? []
  const isOfWindows = isWindows && /^[a-z]:[\\/]/i.test(rest)
  if (isOfWindows || (/^(?:\.{0,2}[\\/](?![\\/])|~)/.test(rest) && !/:[\\/]{2}/.test(rest))) return text
  const mask = (secret: string) => {
    hide(secret)
    return '***'
  }
  const shown = /^\s*postgres(ql)?:/i.test(text) ? shownDatabase(text, mask) : prefix + shownOther(rest, mask)
  const password = /((?<![a-z])(?:pg)?(?:password|passwd|pass|pwd)\s*(?:=|:|%3d)\s*)(?!\*\*\*)(.+)$/is
  return shown.replace(password, (_, name: string, value: string) => {
    hide(/^'((?:\\.|[^'])*)|^\S*/s.exec(value)?.[0] ?? '')
    return name + mask(value)
  })
}

type Mask = (secret: string) => string

/** Keeps only what cannot be part of a password: the user, hosts with ports, the path, and known parameters. */
function shownDatabase(address: string, mask: Mask): string {
  const afterFirst = (text: string, separator: RegExp) =>
    text.replace(separator, (_, secret: string) => `:${mask(secret)}`)
  const [, scheme = '', user = '', hosts = '', path = ''] =
    /^(\s*postgres(?:ql)?:\/*)(.*@)?([^/?]*)(.*)$/is.exec(address) ?? []
  const shownHosts = hosts
    .split(',')
    .map((host) => (/^(\[[^\]]*\]|[^:]*)(:\d*)?$/.test(host) ? host : afterFirst(host, /:(.*)$/s)))
  const shownPart = (part: string) => (harmless.test(part) ? part : mask(part.replace(/^password=/, '')))
  const shownPath = path.replace(/(?<=\?).*$/s, (query) => query.split('&').map(shownPart).join('&'))
  return scheme + afterFirst(user, /(?:[:/?;]|%3[abf]|%2f)(.*)(?=@$)/is) + shownHosts.join() + shownPath
}

const harmless =
  /^(application_name|channel_binding|connect_timeout|dbname|host|max|port|ssl|sslcert|sslkey|sslmode|sslrootcert|target_session_attrs|user)=/

/** Redacts the text from a scheme, or a first word, to the last "@", and the query of a URL. */
function shownOther(text: string, mask: Mask): string {
  const [, head = '', info = '', at = '', rest = ''] =
    /^([^@:\\/%?]*(?::|%3a)?(?:[\\/]|%2f|%5c)*)(?:(.*)(@|%40))?(.*)$/is.exec(text) ?? []
  const isUrl = /[:%]/.test(head) || /(?:[\\/]|%2f|%5c){2}$/i.test(head)
  if (!isUrl && !/:|%3a/i.test(info)) return text
  const [, password = info] = /(?::|%3a)(.*)$/is.exec(info) ?? []
  for (const secret of /[\\/]$/.test(head) ? [password] : [info, password]) mask(secret)
  const shownRest = rest.replace(at === '' ? /\?(.+)$/s : /[?&](.+)$/s, (_, parameters: string) => {
    for (const part of parameters.split('&')) mask(part.replace(/^[^=]*=/, ''))
    return '?***'
  })
  return `${head}${info === '' ? '' : '***'}${at}${shownRest}`
}

/** Whether credentials are saved under such an address, which may be shown even where a token could be in its place. */
export function isLoginAddress(text: string): boolean {
  return /^(https?:\/\/|unix:\/|postgres:\/\/)/.test(text) && shownAddress(text) === text
}
