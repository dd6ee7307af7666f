import { hash } from 'node:crypto'
import { parseInt64, toWireJson } from '../plant/json.js'
import { checkField, idRule, type NewPlant } from '../plant/plant.js'
import { shorten } from '../platform/escape.js'
import type { ListQuery } from '../stores/common/store.js'
import { HttpError } from './errors.js'

/** the maximum and the default of `limit` for a page */
export const listLimits = { max: 1000, default: 100 }

/**
 * Parses an id in a path or a query. Only canonical decimal digits are valid, so that a plant has one URL.
 *
 * @throws {HttpError} 400
 */
export function parseId(text: string, name = 'id'): bigint {
  const id = /^-?\d{1,19}$/.test(text) ? parseInt64(text) : undefined
  if (id === undefined || String(id) !== text) throw invalid(`${name} must be ${idRule}, in decimal digits`, text)
  return id
}

/**
 * Parses the query of a list.
 *
 * @param url the request target
 * @param maxLimit the maximum of `limit`
 * @throws {HttpError} 400 for a parameter that is unknown, repeated or malformed
 */
export function parseListQuery(url: string, maxLimit = listLimits.max): ListQuery {
  const query: ListQuery = {}
  for (const part of url.replace(/^[^?]*\??|#.*$/gs, '').split('&')) {
    if (part === '') continue
    const [name = '', value = ''] = (/^([^=]*)=?(.*)$/s.exec(part) ?? []).slice(1).map(decode)
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined
    if (!read) throw new HttpError(400, `There is no parameter ${JSON.stringify(shorten(name))}, only ${Object.keys(readers).join(', ')}`)
    if (Object.hasOwn(query, name)) throw new HttpError(400, `The parameter ${name} must be given once`)
    read(query, value, maxLimit)
  }
  return query
}

const readers: Record<string, (query: ListQuery, text: string, maxLimit: number) => void> = {
  limit(query, text, maxLimit) {
    query.limit = /^\d{1,15}$/.test(text) ? parseInt(text, 10) : 0
    if (query.limit < 1 || query.limit > maxLimit) throw invalid(`limit must be a whole number from 1 to ${maxLimit}`, text)
  },
  after(query, text) {
    query.after = parseId(text, 'after')
  },
  tag(query, text) {
    query.tag = plantText('tag', text)
  },
  search(query, text) {
    query.search = plantText('search', text)
  },
}

function plantText(name: string, text: string): string {
  const problem = checkField('tag', text)
  if (problem !== undefined) throw new HttpError(400, problem.replace('tag', name))
  return text
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new HttpError(400, 'The query of the request is not valid')
  }
}

function invalid(rule: string, text: string): HttpError {
  return new HttpError(400, `${rule}, but was ${JSON.stringify(shorten(text))}`)
}

/** A strong entity tag (RFC 9110, 8.8.3), a hash of the content. */
export function etagOf(plant: NewPlant): string {
  return `"${hash('sha256', toWireJson(plant), 'base64url').slice(0, 22)}"`
}

/** Whether a header lists an entity tag, or is `*`. A weak tag matches If-None-Match (RFC 9110, 13.1.2), never If-Match (13.1.1). */
export function listsTag(header: string, etag: string, { isWeakEqual }: { isWeakEqual: boolean }): boolean {
  if (header.trim() === '*') return true
  return Array.from(header.matchAll(/(W\/)?("[^"]*")/g)).some(([, weak, tag]) => tag === etag && (isWeakEqual || weak === undefined))
}
