import type { FieldName } from '../../plant/plant.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { FieldRules } from './intake.js'

/** What the columns of a table hold. */
export interface Columns {
  names: readonly string[]
  /** where the fields of a NewPlant are; -1 for one that has no column */
  id: number
  name: number
  tag: number
  /** where the other fields are */
  others: readonly number[]
}

/**
 * Finds the fields of a NewPlant in the names of columns, which are taken exactly as they are.
 *
 * @throws {PlantsError} `malformed` when a name is there twice, or the column of a field is not
 */
export function readHeader(names: readonly string[], rules: FieldRules): Columns {
  refuseUnusable(names)
  const [id, name, tag] = (['id', 'name', 'tag'] as const).map((field) => columnOf(field, names, rules))
  const columns = { id: id ?? -1, name: name ?? -1, tag: tag ?? -1 }
  const others = names.map((_, index) => index).filter((index) => !Object.values(columns).includes(index))
  return { names, ...columns, others }
}

function refuseUnusable(names: readonly string[]): void {
  const known = new Set<string>()
  const repeated = names.find((name) => name !== '' && known.size === known.add(name).size)
  if (repeated !== undefined) {
    const hint = 'Give each column a name of its own'
    throw new PlantsError('malformed', `The header has the column ${JSON.stringify(shorten(repeated))} twice`, { hint })
  }
  if (names.some((name) => name.includes('\r'))) throw carriageReturns()
}

/** Lines end with LF or CRLF. A carriage return alone ended them before 2001; today it is a character like others, so it is not guessed at. */
export function carriageReturns(): PlantsError {
  const hint = "Make them line feeds first: tr '\\r' '\\n'"
  return new PlantsError('malformed', 'The header holds a carriage return, as if lines ended with that alone', { hint })
}

function columnOf(field: FieldName, names: readonly string[], { map, idFrom }: FieldRules): number {
  const wanted = map[field]
  const index = names.indexOf(wanted ?? field)
  const isOptional = wanted === undefined && (field === 'tag' || (field === 'id' && idFrom !== undefined))
  if (index !== -1 || isOptional) return index
  const what = wanted === undefined ? field : `${JSON.stringify(shorten(wanted))} for ${field}`
  throw new PlantsError('malformed', `The header has no column ${what}, only ${list(names)}`, { hint: hintFor(field, names) })
}

function hintFor(field: FieldName, names: readonly string[]): string {
  const alike = names.find((name) => name.trim().toLowerCase() === field)
  const hint = `Say which column holds it: --map ${alike === undefined ? `${field}=COLUMN` : shellWord(`${field}=${alike}`)}`
  return field === 'id' ? `${hint}. Or number the rows: --id-from 1` : hint
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  return `${shown.join(', ')}${names.length > shown.length ? ` and ${names.length - shown.length} more` : ''}`
}
