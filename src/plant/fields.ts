interface FieldDefinition {
  /** of the JSON member, the column, the option, the prompt */
  name: string
  /** its option in one letter, which no other option has */
  short?: string
  /** `int64`: see `idRule`; `text`: well-formed Unicode without U+0000 */
  type: 'int64' | 'text'
  isRequired: boolean
  meaning: string
  description: string
}

export const idRule = 'an integer from -9223372036854775808 to 9223372036854775807'

/**
 * In output order: the id first; all others are text. Types, schema, options, prompts, columns and OpenAPI are derived
 * from it.
 */
export const plantFields = [
  {
    name: 'id',
    short: 'i',
    type: 'int64',
    isRequired: true,
    meaning: 'identification number, or next: the greatest id plus 1',
    description: `Identification number of the plant: ${idRule}, kept exact`,
  },
  {
    name: 'name',
    short: 'n',
    type: 'text',
    isRequired: true,
    meaning: 'name of the plant',
    description: 'The name of the plant',
  },
  {
    name: 'tag',
    short: 't',
    type: 'text',
    isRequired: false,
    meaning: 'tag of the plant, such as shade',
    description: 'Tag that specifies the type of the plant',
  },
] as const satisfies readonly FieldDefinition[]

export type PlantField = (typeof plantFields)[number]
export type TextField = Extract<PlantField, { type: 'text' }>
export type FieldName = 'id' | 'name' | 'tag'
export type TextName = 'name' | 'tag'

/** The specification's Plant, the response of a service. It has no `id`. */
export interface Plant {
  name: string
  tag?: string
}

/** The specification's NewPlant, the request to a service and what a store keeps. `id` is an int64. */
export interface NewPlant extends Plant {
  id: bigint
}

/** A record of an import, as a merge patch (RFC 7396): a missing text stays as it is stored, null removes it. */
export interface PlantPatch {
  id: bigint
  name?: string | null
  tag?: string | null
}

export const textFields: readonly TextField[] = plantFields.filter((field) => field.type === 'text')

/** `id, name and tag` */
export function inWords(items: readonly string[], conjunction: 'and' | 'or'): string {
  return items.join(', ').replace(/, ([^,]+)$/, ` ${conjunction} $1`)
}

export const fieldNames: readonly FieldName[] = plantFields.map(({ name }) => name)

export const textNames = textFields.map(({ name }) => name)

export const fieldsInWords = inWords(fieldNames, 'and')

export const textsInWords = inWords(textNames, 'or')

export const plantColumns = fieldNames.join(', ')

export const plantParameters = fieldNames.map(() => '?').join()
