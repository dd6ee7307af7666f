import type { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Place } from '../store.js'

/** What stands in an address; what does not is undefined. */
export interface PostgresUri {
  user: string | undefined
  password: string | undefined
  /** what stands for each host, as `[name, port]` */
  hosts: (readonly [host: string, port: string | undefined])[] | undefined
  database: string | undefined
  parameters: ReadonlyMap<string, string>
}

/** Refuses an address. What it is told must repeat nothing that may be a part of a password. */
export type Refuse = (why: string, hint?: string) => PlantsError

/** Each is what libpq calls it, but for `max`, which is ours. */
export const parameterNames = [
  ...[
    'application_name',
    'connect_timeout',
    'dbname',
    'host',
    'max',
    'password',
    'port',
    'require_auth',
    'requirepeer',
    'sslcert',
    'sslkey',
    'sslmode',
    'sslrootcert',
  ],
  ...['target_session_attrs', 'user'],
] as const

/**
 * Takes the URI of a database apart, as libpq does.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
 */
export function parseUri(address: string, refuse: Refuse, place: Place): PostgresUri {
  const { user, password, authority, path, query } = takeApart(address, refuse)
  const fromQuery = /(?:^|&)password=([^&]*)/.exec(query)?.[1] ?? ''
  for (const text of [password, fromQuery]) if (text !== '') keepSecret(text, address, refuse, place)
  const parameters = parseQuery(query, refuse)
  const decode = (text: string) => decoded(text, refuse) || undefined
  return {
    user: parameters.get('user') ?? decode(user),
    password: parameters.get('password') ?? decode(password),
    hosts: authority === '' ? undefined : authority.split(',').map((part) => parseHost(part, refuse)),
    database: parameters.get('dbname') ?? decode(path),
    parameters,
  }
}

/** The parts as they stand there. A password may hold a "?", but no "/". */
function takeApart(address: string, refuse: Refuse) {
  const [, rest] = /^postgres(?:ql)?:\/\/(.*)$/is.exec(address) ?? []
  if (rest === undefined) throw refuse('is not a valid address of a database')
  const [, info = '', tail = ''] = /^(?:([^@/]*)@)?(.*)$/s.exec(rest) ?? []
  if (tail.includes('@')) throw refuse('holds an "@" too many', 'Within a user name or a password, write @ as %40, / as %2F and : as %3A')
  const [, user = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(info) ?? []
  const [, authority = '', path = '', query = ''] = /^([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(tail) ?? []
  return { user, password, authority, path, query }
}

/** Hides a password, unless it is a word that the address shows anyway; then a `***` in its place would tell which. */
function keepSecret(text: string, address: string, refuse: Refuse, { secrets, isArgument }: Place): void {
  if (!address.replace(text, '').includes(text)) secrets.add(decoded(text, refuse)).add(text)
  if (!isArgument) return
  throw refuse(
    'holds a password, which others could see in the list of processes',
    'Leave it out, and set PGPASSWORD, write it into ~/.pgpass, or save it with: plants auth login',
  )
}

function parseHost(text: string, refuse: Refuse): readonly [string, string | undefined] {
  const [, host, port] = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d*))?$/.exec(text) ?? []
  if (host === undefined)
    throw refuse('names a host that is none', 'A port is a number, and an IPv6 address stands in brackets: [::1]:5432')
  return [decoded(host, refuse).replace(/^\[(.*)\]$/, '$1'), port || undefined]
}

function parseQuery(query: string, refuse: Refuse): Map<string, string> {
  const mayTell = !/password/i.test(query) // of which an "&" may be a part
  const parameters = new Map<string, string>()
  // Of channel binding, these two ask for no more than is done.
  for (const part of query.split('&').filter((each) => each !== '' && !/^channel_binding=(disable|prefer)$/.test(each))) {
    const [, name = '', value] = /^([^=]*)=(.*)$/s.exec(part) ?? []
    if (value === undefined) throw refuse('holds a parameter without "="')
    if (name === 'ssl' && value === 'true')
      parameters.set('sslmode', 'require') // as JDBC says it, and libpq understands
    else if (!parameterNames.some((known) => known === name)) throw unknown(mayTell ? name : undefined, refuse)
    else if (value === '') throw refuse(`holds the parameter ${name} without a value`)
    else parameters.set(name, decoded(value, refuse))
  }
  return parameters
}

function unknown(name: string | undefined, refuse: Refuse): PlantsError {
  // Services that host databases write it into the addresses that they hand out.
  if (name === 'channel_binding')
    return refuse('asks for channel_binding, which is not known here', 'Leave it out: with sslmode=verify-full nobody stands in between')
  const which = name === undefined ? '' : ` ${JSON.stringify(shorten(name))}`
  return refuse(`holds a parameter${which} that is not known here`, `There are: ${parameterNames.join(', ')}`)
}

function decoded(text: string, refuse: Refuse): string {
  try {
    const value = decodeURIComponent(text)
    if (value.includes('\0')) throw refuse('holds U+0000, which no address does')
    encodeURIComponent(value)
    return value
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw refuse('is not encoded as a URI is', 'Write a % as %25, and what is not ASCII as UTF-8')
  }
}
