import type { Address } from './store.js'

/**
 * An address as it may be shown: `***` stands for what is a password or a token, or may be one. That holds for what is not quite an
 * address as well, such as libpq's `host=… password=…`, a URL of another kind, or one with a typing error; a plain path stays as it is.
 *
 * @param hide gets each text that `***` stands for
 */
export function shownAddress(text: string, hide: (secret: string) => void = () => undefined): string {
  const [, prefix = '', rest = ''] = /^(\s*(?:(?:sqlite|unix):)*)(.*)$/is.exec(text) ?? []
  if (isPath(rest)) return text
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

function isPath(text: string): boolean {
  const isAbsolute = process.platform === 'win32' && /^[a-z]:[\\/]/i.test(text)
  return isAbsolute || (/^(?:\.{0,2}[\\/](?![\\/])|~)/.test(text) && !/:[\\/]{2}/.test(text))
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

/**
 * Whether a text is written as what a token or a password is kept for: the address of a service, or who logs in to a database. Only
 * then it may be shown where a token could stand in its place.
 */
export function isLoginAddress(text: string): boolean {
  return /^(https?:\/\/|unix:\/|postgres:\/\/)/.test(text) && shownAddress(text) === text
}

/** What a token or a password for a store is kept under: the address of a service, and of a database who logs in and where. */
export function loginAddress(address: Address): string {
  return address.kind === 'postgres' ? address.login : address.name
}
