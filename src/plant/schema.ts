/*
 * The shapes of the specification, as zod schemas. The types of TypeScript, the schemas of
 * openapi.json and the messages about invalid values follow from them. zod takes milliseconds to
 * load, so `plants create` loads this file only to explain what `parsePlant` in plant.ts has not
 * accepted. A service always loads it.
 */
import * as z from 'zod/mini'
import { shorten } from '../platform/escape.js'
import { type FieldName, idRule, isStorableString, type StringFieldName } from './fields.js'
import { NumberLiteral } from './json.js'

/** Builds the `error` of a schema, such as "the name must be a string, but was null". */
function buildSentence(subject: string, rule: string) {
  return ({ input }: { input?: unknown }) =>
    input === undefined
      ? `${subject} is missing`
      : `${subject} must ${rule}, but was ${describeValue(input)}`
}

function describeValue(value: unknown): string {
  if (value instanceof NumberLiteral) return shorten(value.source)
  if (typeof value === 'string') return JSON.stringify(shorten(value))
  if (typeof value === 'number') return 'a number'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** The range stands only in the message about a number outside of it. */
function describeInvalidId({ input }: { input?: unknown }): string {
  const text = input instanceof NumberLiteral ? input.source : input
  if (typeof text !== 'string' && typeof text !== 'bigint')
    return buildSentence('the id', 'be a whole number')({ input })
  const isOutside = Math.abs(Number(text)) >= 2 ** 63
  if (isOutside) return buildSentence('the id', `be ${idRule}`)({ input })
  if (typeof input === 'string' && /^-?(?:0|[1-9]\d*)$/.test(input))
    return `the id ${describeValue(input)} must be a number without quotes`
  // `1E3` is a whole number, but as a text it may be the code of an article.
  const isInOtherDigits = typeof input === 'string' && /^-?(?:0\d+|\d+e\d+|\d+\.0*)$/i.test(input)
  return `the id ${describeValue(input)} is not ${isInOtherDigits ? 'in plain digits' : 'a whole number'}`
}

const id = z
  .int64({ error: describeInvalidId })
  .check(z.describe('Identification number of the plant, kept exact'))

function buildFieldSchema(field: StringFieldName, description: string) {
  const error = buildSentence(`the ${field}`, 'be a string')
  const contentError = buildSentence(`the ${field}`, 'not contain U+0000 or a lone surrogate')
  return z
    .string({ error })
    .check(z.refine(isStorableString, { error: contentError }), z.describe(description))
}

const name = buildFieldSchema('name', 'The name of the plant')
const tag = buildFieldSchema('tag', 'Tag that specifies the type of the plant')
const error = buildSentence('it', 'be an object')

export const plantSchema = z.object({ name, tag: z.optional(tag) }, { error })

/** A patch may lack its name, and may have null as its tag. */
export const schemas = {
  newPlant: z.object({ id, ...plantSchema.shape }, { error }),
  patch: z.object({ id, name: z.exactOptional(name), tag: z.nullish(tag) }, { error }),
}

export type PlantForm = keyof typeof schemas

/** The specification's Error. */
export const errorSchema = z.object(
  {
    error: z
      .int32({ error: buildSentence('the error', 'be a 32-bit integer') })
      .check(z.describe('Numeric error value')),
    message: z
      .string({ error: buildSentence('the message', 'be a string') })
      .check(z.describe('Error text')),
  },
  { error },
)

/** Returns a sentence for each invalid field, such as "the name is missing". */
export function findProblems(value: unknown, form: PlantForm = 'newPlant'): string[] {
  const { error } = schemas[form].safeParse(value, { jitless: true })
  return error?.issues.map(({ message }) => message) ?? []
}

export function findFieldProblem(field: FieldName, value: unknown): string | undefined {
  const { error } = { id, name, tag }[field].safeParse(value, { jitless: true })
  return error?.issues[0]?.message
}
