interface PlantField {
  /** in JSON, as a column, as `--NAME`, and as what a prompt asks for */
  name: string
  /** `int64`: -9223372036854775808 to 9223372036854775807; `text`: well-formed Unicode without U+0000 */
  type: 'int64' | 'text'
  isRequired: boolean
  /** for the help of its option */
  meaning: string
  /** for OpenAPI */
  description: string
}

/**
 * The fields of a NewPlant, in the order in which they are written everywhere. Types, the schema, options, prompts, the columns of CSV, SQL
 * and tables, and OpenAPI follow from this table. The id comes first; each other field is a text.
 */
export const plantFields = [
  {
    name: 'id',
    type: 'int64',
    isRequired: true,
    meaning: 'identification number, or next for the greatest one plus 1',
    description: 'Identification number of the plant: an integer from -9223372036854775808 to 9223372036854775807, kept exact',
  },
  { name: 'name', type: 'text', isRequired: true, meaning: 'name of the plant', description: 'The name of the plant' },
  {
    name: 'tag',
    type: 'text',
    isRequired: false,
    meaning: 'tag of the plant, such as shade',
    description: 'Tag that specifies the type of the plant',
  },
] as const satisfies readonly PlantField[]

export type KnownField = (typeof plantFields)[number]
export type FieldName = (typeof plantFields)[number]['name']
export type TextField = Extract<(typeof plantFields)[number], { type: 'text' }>
type RequiredText = Extract<TextField, { isRequired: true }>['name']
type OptionalText = Extract<TextField, { isRequired: false }>['name']

/** What the service answers: the specification's Plant, which has no `id`. */
export interface Plant extends Record<RequiredText, string>, Partial<Record<OptionalText, string>> {}

/** What the service stores: the specification's NewPlant. `id` is an int64, exact. */
export interface NewPlant extends Plant {
  id: bigint
}

/** The fields that are texts: all but the id. */
export const textFields: readonly TextField[] = plantFields.filter((field) => field.type === 'text')

/** `id, name and tag`, for messages */
export const fieldsInWords = inWords(plantFields, 'and')

/** `name or tag` */
export const textsInWords = inWords(textFields, 'or')

function inWords(fields: readonly PlantField[], conjunction: 'and' | 'or'): string {
  const names = fields.map(({ name }) => name).join(', ')
  return names.replace(/, (\w+)$/, ` ${conjunction} $1`)
}

/** `id, name, tag`: the columns of a table of plants. */
export const plantColumns = plantFields.map(({ name }) => name).join(', ')

/** `?,?,?`: a parameter of SQL for each of `plantColumns`. */
export const plantParameters = plantFields.map(() => '?').join()
