/**
 * Parses the query of a list or a count. It has `name=value` pairs, which are encoded as forms
 * encode them, so that "+" is a space (https://url.spec.whatwg.org/#urlencoded-parsing).
 *
 * `URLSearchParams` would accept two things that are errors here. It replaces bytes that are not
 * UTF-8 by U+FFFD, so that a search would look for another string. And it accepts a repeated
 * parameter, of which a proxy may use another value than the service.
 */
import { isPlainWord } from '../platform/escape.js'
import { maxSearchLength, type ReadQuery } from '../stores/query.js'
import { HttpError } from './http-error.js'
import { parseIdText } from './parse-request.js'
import { listParameters } from './routes.js'

const maxLimit = 1000

export type PageQuery = ReadQuery & { limit: number }

/**
 * @param url the target of a request, such as `/plants?limit=10`
 * @param parameters the operation accepts these. The result has the defaults of all others.
 * @throws {HttpError} 400, with the name of the parameter that is wrong, or the supported ones
 */
export function parseListQuery(url: string, parameters = listParameters): PageQuery {
  const values = parseQuery(url, parameters)
  const after = values.get('after')
  return {
    limit: parseLimit(values.get('limit') ?? '100'),
    desc: parseChoice('order', values.get('order') ?? 'asc', ['asc', 'desc']) === 'desc',
    after: after === undefined ? undefined : parseIdText(after, 'after'),
    tag: parseTag(values),
    search: parseSearch(values.get('search')),
  }
}

/** @returns the decoded values by the names of their parameters */
function parseQuery<Name extends string>(
  url: string,
  names: readonly Name[],
): ReadonlyMap<Name, string> {
  const [, query = ''] = /\?(.*)/s.exec(url) ?? []
  const values = new Map<Name, string>()
  // "a=1&" and "a=1&&b=2" are common, and have no parameter with an empty name.
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [encodedName = '', ...valueParts] = pair.split('=')
    const decodedName = decode(encodedName) ?? ''
    const name = names.find((parameterName) => parameterName === decodedName)
    if (name === undefined) {
      const subject = isPlainWord(decodedName)
        ? `The query parameter ${decodedName}`
        : 'A query parameter'
      const message = `${subject} is unknown. The supported parameters are ${names.join(', ')}`
      throw new HttpError(400, message)
    }
    if (values.has(name)) throw new HttpError(400, `${name} must not be repeated`)
    values.set(name, decodeValue(name, valueParts.join('=')))
  }
  return values
}

function decodeValue(name: string, text: string): string {
  const value = decode(text)
  if (value === undefined) {
    const rule = 'must be UTF-8 in percent-encoding, in which "%" is written as %25'
    throw new HttpError(400, `${name} ${rule}`)
  }
  if (value.includes('\0')) throw new HttpError(400, `${name} must not contain U+0000`)
  return value
}

/** Returns undefined for bytes that are not UTF-8, and for a "%" without two digits after it. */
function decode(text: string): string | undefined {
  // RFC 3986 allows only ASCII. Node.js rejects a target with other bytes; Bun may not.
  if (!/^[!-~]*$/.test(text)) return undefined
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (error) {
    if (error instanceof URIError) return undefined
    throw error
  }
}

function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxLimit) return limit
  throw new HttpError(400, `limit must be a whole number from 1 to ${maxLimit}`)
}

function parseChoice(name: string, text: string, choices: readonly [string, string]): string {
  if (choices.includes(text)) return text
  throw new HttpError(400, `${name} must be ${choices.join(' or ')}`)
}

/** @returns false to select the plants without a tag, and undefined to select all */
function parseTag(values: ReadonlyMap<string, string>): string | false | undefined {
  const noTag = parseChoice('noTag', values.get('noTag') ?? 'false', ['true', 'false'])
  return noTag === 'true' ? false : values.get('tag')
}

function parseSearch(text: string | undefined): string | undefined {
  if (text === undefined || Array.from(text).length <= maxSearchLength) return text
  throw new HttpError(400, `search must not be longer than ${maxSearchLength} characters`)
}
