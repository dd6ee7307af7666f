import { existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import {
  type AddressContext,
  maxSocketPathBytes,
  type PostgresAddress,
  type PostgresHost,
  sessionAttributes,
  sslModes,
} from '../common/address.js'

interface Parameter {
  variable?: string
  default?: string
  /** whether it says who logs in and where, before the "?" of a complete address */
  isLogin?: true
  isPath?: true
  /** what its value must be; anything without one */
  rule?: string
  accepts?(value: string): boolean
}

/**
 * The parameters of an address, as in libpq, except for `max`, which this program adds, and the default of `target_session_attrs`: a store
 * must be writable.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
 */
const parameters = {
  application_name: {
    variable: 'PGAPPNAME',
    default: 'plants',
    rule: '1 to 63 visible ASCII characters', // PostgreSQL truncates it to 63 bytes, and replaces other characters by "?"
    accepts: (value) => /^[\x20-\x7e]{1,63}$/.test(value),
  },
  connect_timeout: {
    variable: 'PGCONNECT_TIMEOUT',
    default: '5',
    rule: 'a whole number of seconds from 1 to 3600',
    accepts: (value) => isCount(value, 3600),
  },
  dbname: { variable: 'PGDATABASE', isLogin: true },
  host: { variable: 'PGHOST', isLogin: true },
  max: { default: '4', rule: 'a whole number from 1 to 100', accepts: (value) => isCount(value, 100) },
  password: { isLogin: true },
  port: { variable: 'PGPORT', default: '5432', isLogin: true },
  sslcert: { variable: 'PGSSLCERT', isPath: true },
  sslkey: { variable: 'PGSSLKEY', isPath: true },
  sslmode: {
    variable: 'PGSSLMODE',
    default: 'prefer',
    rule: `one of ${sslModes.join(', ')}`,
    accepts: (value) => sslModes.some((mode) => mode === value),
  },
  sslrootcert: { variable: 'PGSSLROOTCERT', isPath: true },
  target_session_attrs: {
    variable: 'PGTARGETSESSIONATTRS',
    default: 'read-write',
    rule: `one of ${sessionAttributes.join(', ')}`,
    accepts: (value) => sessionAttributes.some((attributes) => attributes === value),
  },
  user: { variable: 'PGUSER', isLogin: true },
} satisfies Record<string, Parameter>

type ParameterName = keyof typeof parameters

const parameterNames = Object.keys(parameters) as ParameterName[] // as its type says

/** Variables of libpq that ask for a protection which is not supported. */
const unsupported = ['PGREQUIREAUTH', 'PGREQUIREPEER', 'PGCHANNELBINDING']

function isCount(text: string, most: number): boolean {
  return /^[1-9]\d{0,3}$/.test(text) && parseInt(text, 10) <= most
}

const example = 'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full'

/** Creates the error for an invalid address. The texts must not contain what may be a part of a password. */
type Refuse = (why: string, hint?: string) => PlantsError

/**
 * Parses the address of a database like libpq. What it does not specify comes from libpq's environment variables, then from the defaults.
 *
 * @param source the option or setting with the address, such as `--store`
 * @throws {PlantsError} `malformed`; the message never contains what may be a password
 */
export function parsePostgres(address: string, source: string, place: AddressContext): PostgresAddress {
  const invalidAddress: Refuse = (why, hint = example) => new PlantsError('malformed', `${source} ${why}`, { hint })
  const given = parseUri(address, invalidAddress, place)
  const asked = unsupported.find((name) => !['', 'disable', 'prefer'].includes(place.env[name] ?? ''))
  if (asked !== undefined) {
    const hint = 'Unset it. To verify the server, add to the address: sslmode=verify-full'
    throw new PlantsError('malformed', `${asked} is set, but it is not supported`, { hint })
  }
  // The values fit their types, since they are accepted.
  const values = Object.fromEntries(parameterNames.map((name) => [name, valueIn(given, name, source, place)])) as ParameterValues
  if (values.sslrootcert === 'system') {
    // Anybody can get a certificate for some host, so that its name must be verified.
    const sslmode = given.get('sslmode') ?? (place.env['PGSSLMODE'] || 'verify-full')
    if (sslmode !== 'verify-full') throw invalidAddress(`combines sslrootcert=system with sslmode=${sslmode}`, 'Use sslmode=verify-full')
    values.sslmode = sslmode
  }
  const user = values.user ?? place.userName()
  if (user === undefined)
    throw invalidAddress('has no user, and this process has no user name', 'Write postgres://USER@HOST/DATABASE, or set PGUSER')
  const hosts = hostsFrom((values.host ?? defaultHost()).split(','), values.port.split(','), invalidAddress)
  const database = values.dbname ?? user
  const login = `postgres://${encodeURIComponent(user)}@${hosts.map(hostText).join()}/${encodeURIComponent(database)}`
  const query = queryText(values, place.env)
  return {
    scheme: 'postgres',
    name: `${login}${query && `?${query}`}`,
    login,
    hosts,
    user,
    database,
    password: values.password,
    sslmode: values.sslmode,
    sslrootcert: values.sslrootcert,
    sslcert: values.sslcert,
    sslkey: values.sslkey,
    targetSessionAttrs: values.target_session_attrs,
    applicationName: values.application_name,
    connectTimeout: parseInt(values.connect_timeout, 10) * 1000,
    max: parseInt(values.max, 10),
  }
}

function valueIn(given: Map<ParameterName, string>, name: ParameterName, source: string, place: AddressContext): string | undefined {
  const { variable, default: preset, rule, accepts, isPath }: Parameter = parameters[name]
  const own = given.get(name)
  const value = own ?? ((variable && place.env[variable]) || preset)
  if (value === undefined) return undefined
  if (accepts?.(value) === false) {
    const what = own === undefined ? `${variable}` : `${source} contains the parameter ${name}, which`
    const was = given.has('password') ? '' : `, but was ${JSON.stringify(shorten(value))}`
    throw new PlantsError('malformed', `${what} must be ${rule}${was}`, { hint: example })
  }
  return isPath && value !== 'system' ? place.resolvePath(value) : value
}

type ParameterValues = {
  [Name in ParameterName]: (typeof parameters)[Name] extends { default: string } ? string : string | undefined
} & Pick<PostgresAddress, 'sslmode'> & { target_session_attrs: PostgresAddress['targetSessionAttrs'] }

/** The parameters that an address must contain to have the same meaning, both in this environment and without any variables. */
function queryText(values: ParameterValues, env: AddressContext['env']): string {
  const included = parameterNames.filter((name) => {
    const { variable, default: preset, isLogin }: Parameter = parameters[name]
    return !isLogin && (values[name] !== preset || ((variable && env[variable]) || preset) !== preset)
  })
  return included
    .flatMap((name) => (values[name] === undefined ? [] : `${name}=${encodeURIComponent(values[name]).replaceAll('%2F', '/')}`))
    .join('&')
}

/**
 * Parses the URI of a database like libpq: each part is a parameter, and those after the "?" override the others. `host` and `port` are
 * lists.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
 */
function parseUri(address: string, refuse: Refuse, { secrets, isArgument }: AddressContext): Map<ParameterName, string> {
  const [, rest] = /^postgres(?:ql)?:\/\/(.*)$/is.exec(address) ?? []
  if (rest === undefined) throw refuse('is not a valid address of a database')
  // A password may contain "?", but not "/".
  const [, info = '', tail = ''] = /^(?:([^@/]*)@)?(.*)$/s.exec(rest) ?? []
  if (tail.includes('@')) throw refuse('contains more than one "@"', 'In a user name or a password, write @ as %40, / as %2F and : as %3A')
  const [, user = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(info) ?? []
  const [, authority = '', path = '', query = ''] = /^([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(tail) ?? []
  const passwords = [password, /(?:^|&)password=([^&]*)/.exec(query)?.[1] ?? ''].filter((text) => text !== '')
  for (const text of passwords) {
    // If the rest of the address contains it, too, a `***` there would reveal which part it is.
    if (!address.replace(text, '').includes(text)) secrets.add(decoded(text, refuse)).add(text)
    if (!isArgument) continue
    throw refuse(
      'contains a password, which other users could see in the list of processes',
      'Remove it, and set PGPASSWORD, or save it with: plants auth login',
    )
  }
  const hosts = authority.split(',').map((part) => {
    const [, host, port = ''] = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d*))?$/.exec(part) ?? []
    if (host === undefined) throw refuse('has an invalid host', 'A port is a number, and an IPv6 address is in brackets: [::1]:5432')
    return { host: decoded(host, refuse).replace(/^\[(.*)\]$/, '$1'), port }
  })
  const parts: [ParameterName, string][] = [
    ['user', decoded(user, refuse)],
    ['password', decoded(password, refuse)],
    ['host', hosts.map(({ host }) => host).join()],
    ['port', hosts.map(({ port }) => port).join()],
    ['dbname', decoded(path, refuse)],
  ]
  return new Map([...parts.filter(([, value]) => value !== ''), ...parseQuery(query, refuse)])
}

function parseQuery(query: string, refuse: Refuse): [ParameterName, string][] {
  const mayShow = !/password/i.test(query) // a password may contain "&"
  // These two values of channel_binding do not require it.
  const parts = query.split('&').filter((part) => part !== '' && !/^channel_binding=(disable|prefer)$/.test(part))
  return parts.map((part) => {
    const [, text = '', value] = /^([^=]*)=(.*)$/s.exec(part) ?? []
    if (value === undefined) throw refuse('contains a parameter without "="')
    if (part === 'ssl=true') return ['sslmode', 'require'] // from JDBC, which libpq accepts, too
    const name = parameterNames.find((known) => known === text)
    // Database hosting services include it in their addresses.
    if (mayShow && text === 'channel_binding')
      throw refuse('contains channel_binding, which is not supported', 'Remove it: sslmode=verify-full also prevents impersonation')
    if (name === undefined) {
      const which = mayShow ? ` ${JSON.stringify(shorten(text))}` : ''
      throw refuse(`contains a parameter${which} that is not supported`, `The parameters are: ${parameterNames.join(', ')}`)
    }
    if (value === '') throw refuse(`contains the parameter ${name} without a value`)
    return [name, decoded(value, refuse)]
  })
}

function decoded(text: string, refuse: Refuse): string {
  try {
    const value = decodeURIComponent(text)
    if (value.includes('\0')) throw refuse('contains U+0000, which is not allowed in an address')
    encodeURIComponent(value)
    return value
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw refuse('is not percent-encoded correctly', 'Write % as %25, and percent-encode other characters as UTF-8')
  }
}

function defaultHost(): string {
  const folder = '/var/run/postgresql'
  return existsSync(folder) ? folder : 'localhost'
}

function hostsFrom(names: string[], ports: string[], refuse: Refuse): PostgresHost[] {
  if (ports.length !== 1 && ports.length !== names.length)
    throw refuse(
      `names ${names.length} ${names.length === 1 ? 'host' : 'hosts'}, but ${ports.length} ports`,
      'Name one for all, or one for each',
    )
  return names.map((name, index) => {
    const text = (ports.length === 1 ? ports[0] : ports[index]) || parameters.port.default
    const port = /^\d{1,5}$/.test(text) ? parseInt(text, 10) : 0
    if (port < 1 || port > 65_535) throw refuse('has a port that is not a number from 1 to 65535')
    if (name.startsWith('/')) return { host: folderFrom(name, port, refuse), port }
    if (name === '') throw refuse('has an empty host')
    if (!isIPv6(name) && !/^[^\s:/@,%?#[\]\\]{1,255}$/.test(name)) throw refuse('has an invalid host')
    return { host: name.toLowerCase(), port }
  })
}

function folderFrom(name: string, port: number, refuse: Refuse): string {
  const folder = name.replace(/(?<=.)\/+$/, '')
  if (Buffer.byteLength(socketPath(folder, port)) > maxSocketPathBytes)
    throw refuse(`has a socket path that is longer than ${maxSocketPathBytes} bytes`, 'Sockets need shorter ones')
  return folder
}

export function socketPath(folder: string, port: number): string {
  return `${folder}/.s.PGSQL.${port}`
}

function hostText({ host, port }: PostgresHost): string {
  return `${isIPv6(host) ? `[${host.replace('%', '%25')}]` : encodeURIComponent(host)}:${port}`
}
