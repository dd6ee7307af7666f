import { parseInt64 } from '../plant/json.js'
import { idRule } from '../plant/plant.js'
import { parseCount, refusedValue } from '../platform/values.js'
import type { ListQuery } from '../stores/store.js'

/** The flags that every command takes, as commander gives them. */
export interface GlobalFlags {
  store?: string
  output?: string
  verbose?: boolean
  /** false after `--no-input` */
  input?: boolean
  /** false after `--no-color` */
  color?: boolean
}

/** The flags that choose some of the plants. */
interface QueryFlags {
  limit?: string
  after?: string
  tag?: string
}

export function parseQuery({ limit, after, tag }: QueryFlags): ListQuery {
  return {
    limit: limit === undefined ? undefined : parseCount('--limit', limit),
    after: after === undefined ? undefined : parseId('--after', after),
    tag,
  }
}

/** Reads an id in JSON's number grammar, for the flag or argument that has this name. */
export function parseId(name: string, text: string): bigint {
  const id = parseInt64(text)
  if (id === undefined) throw refusedValue(name, idRule, text, '1')
  return id
}
