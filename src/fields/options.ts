import type { FormatOptions } from '../formats/reader.js'
import { type FieldName, fieldNames } from '../plant/fields.js'
import type { ExistsPolicy } from '../stores/change.js'

/** Which columns or keys an import reads, and which of them a record may lack. */
export interface FieldOptions extends Pick<FormatOptions, 'columns'> {
  map: FieldMap
  /** A record without an id stands for the plant that has its name. */
  byName?: true | undefined
  /** With `update`, a record may lack its name or tag, which then stay as they are stored. */
  ifExists: ExistsPolicy
}

/**
 * The columns or keys of each field that does not have its own name: `{ name: ['Kind'] }`. A column
 * can be given by its number. Several columns are joined to the name: `{ name: ['Genus',
 * 'Species'] }`. A field with an empty list is not read.
 */
export type FieldMap = Partial<Record<FieldName, readonly string[]>>

/** Whether no option says where the ids are, or that there are none. */
export function needsOwnIds({ map, columns, byName }: FieldOptions): boolean {
  return !byName && map.id === undefined && !columns
}

/** A column or a key that an import reads if it is there. */
export interface WantedName {
  field: FieldName
  name: string
}

/** Lists the names that `--map` gives to columns or keys, or else the names of the fields. */
export function listWantedNames({ map }: Pick<FieldOptions, 'map'>): WantedName[] {
  return fieldNames.flatMap((field) => (map[field] ?? [field]).map((name) => ({ field, name })))
}

/**
 * Finds the columns or keys that an import needs and the input lacks. An import needs those that
 * `--map` names, the id, unless records without one get one, and the name, unless only tags are
 * updated.
 */
export function findMissingNames(
  hasName: (name: string) => boolean,
  options: FieldOptions,
): WantedName[] {
  const { map, byName = false, ifExists } = options
  const wantedNames = listWantedNames(options)
  const hasTag = wantedNames.some(({ field, name }) => field === 'tag' && hasName(name))
  const isOptional = { id: byName, name: ifExists === 'update' && hasTag, tag: true }
  return fieldNames.flatMap((field) => {
    const names = map[field]
    if (!names?.length && isOptional[field]) return []
    // A field that an import needs, but must not read, is missing.
    const missingNames =
      names?.length === 0 ? [field] : (names ?? [field]).filter((name) => !hasName(name))
    return missingNames.map((name) => ({ field, name }))
  })
}
