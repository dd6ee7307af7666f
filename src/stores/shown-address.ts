import { parameterNames } from './postgres/uri.js'

/**
 * An address as it may be shown: `***` stands for what is a password or a token, or may be one. That holds for what is not quite an
 * address as well, such as libpq's `host=… password=…`, a URL of another kind, or one with a typing error; a plain path stays as it is.
 *
 * @param hide gets each text that `***` stands for
 */
export function shownAddress(text: string, hide: (secret: string) => void = () => undefined): string {
  const [, prefix = '', rest = ''] = /^(\s*(?:(?:sqlite|unix):)*)(.*)$/is.exec(text) ?? []
  const secret = (value: string) => {
    hide(value)
    return '***'
  }
  if (isPath(rest))
    return prefix === ''
      ? text
      : text.replace(/(:[\\/][^?#;]*[?#;]|[?#;]\w+=)(.+)$/s, (_, before: string, value: string) => before + secret(value))
  const shown = /^\s*postgres(ql)?:/i.test(text) ? shownDatabase(text, secret) : prefix + shownOther(rest, hide)
  return shown.replace(named, (_, name: string, value: string) => {
    hide(value)
    hide(/^'((?:\\.|[^'])*)|^\S*/s.exec(value)?.[0] ?? '')
    return `${name}***`
  })
}

/** What is called a password or a token: `password=…` anywhere, `password: …` at the beginning of a word, `password …` at that of the text. */
const named =
  /((?:(?:password|passwd|pass|pwd|(?<!ssl)key|token|secret)\s*(?:=|%3d)|(?<![^\s#;&])(?:pg)?(?:password|passwd|pass|pwd|key|token|secret)\s*:|^\s*(?:pg)?(?:password|passwd)\s)\s*)(?!\*\*\*)(.+)$/is

function isPath(text: string): boolean {
  const isAbsolute = process.platform === 'win32' && /^[a-z]:[\\/]/i.test(text)
  return isAbsolute || (/^(?:\.{0,2}[\\/](?![\\/])|~)/.test(text) && !/:[\\/]{2}|postgres(ql)?:/i.test(text))
}

/** Of the address of a database what is no password, and can be no part of one: the user, hosts with ports, and parameters that are known. */
function shownDatabase(address: string, secret: (text: string) => string): string {
  const [, scheme = '', info, tail = ''] = /^(\s*postgres(?:ql)?:\/*)(?:(.*)@)?(.*)$/is.exec(address) ?? []
  const rest = tail.replace(/^([^?#;]*[#;])([^?]+)/, (_, before: string, text: string) => before + secret(text))
  const [, hosts = '', path = '', query] = /^([^/?]*)([^?]*)(?:\?(.*))?$/s.exec(rest) ?? []
  const shownHosts = hosts
    .split(',')
    .map((host) => (/^(\[[^\]]*\]|[^:]*)(:\d*)?$/.test(host) ? host : host.replace(/:(.*)$/s, (_, text: string) => `:${secret(text)}`)))
  const shownUser = (text: string) => text.replace(/(?:[:/?;]|%3a)(.*)$/is, (_, password: string) => `:${secret(password)}`)
  const user = info === undefined ? '' : `${shownUser(info)}@`
  const parameters = query?.split('&').map((part) => {
    const [name = ''] = part.split('=', 1)
    if (name === 'user') return shownUser(part)
    return harmless.includes(name) && part !== name ? part : secret(part.replace(/^password=/, ''))
  })
  return `${scheme}${user}${shownHosts.join()}${path}${parameters ? `?${parameters.join('&')}` : ''}`
}

/** Parameters whose values are shown; the two besides are known to others. */
const harmless: readonly string[] = [...parameterNames.filter((name) => name !== 'password'), 'channel_binding', 'ssl']

/** Leaves out what stands between a scheme, or a first word, and the last "@", and what follows the path of a URL. */
function shownOther(text: string, hide: (secret: string) => void): string {
  const [, head = '', info = '', at = '', rest = ''] = /^([^@:\\/%?]*(?::|%3a)?(?:[\\/]|%2f|%5c)*)(?:(.*)(@|%40))?(.*)$/is.exec(text) ?? []
  const isUrl = /[:%]/.test(head) || /(?:[\\/]|%2f|%5c){2}$/i.test(head)
  if (!isUrl && !/:|%3a/i.test(info))
    return text.replace(/(\s(?=[^\s\\/]+@)|[?#;]\w+=)([^@]+)/, (_, before: string, secret: string) => {
      hide(secret)
      return `${before}***`
    })
  const [, , password = info] = /^(.*?)(?::|%3a)(.*)$/is.exec(info) ?? []
  for (const secret of /[\\/]$/.test(head) ? [password] : [info, password]) hide(secret)
  const end = at === '' ? (/[\\/]$/.test(head) ? /([?#;])(.+)$/s : /(\?)(.+)$/s) : /([?&#;])(.+)$/s
  const shownRest = rest.replace(end, (_, mark: string, parameters: string) => {
    for (const part of parameters.split('&')) hide(part.replace(/^[^=]*=/, ''))
    return `${mark === '&' ? '?' : mark}***`
  })
  return `${head}${info === '' ? '' : '***'}${at}${shownRest}`
}
