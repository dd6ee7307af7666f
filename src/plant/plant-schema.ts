import * as z from 'zod/mini'
import { shorten } from '../platform/escape.js'
import { NumberText } from './exact-json.js'
import {
  type FieldName,
  idRule,
  largestId,
  type PlantForm,
  smallestId,
  type TextName,
  textRule,
} from './plant.js'

/** The one sentence about a wrong value: the rule, and what it was. */
function sentence(subject: string, rule: string) {
  return ({ input }: { input?: unknown }) => `${subject} must be ${rule}, but ${describe(input)}`
}

function describe(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (value instanceof NumberText) return `was ${shorten(value.text)}`
  if (typeof value === 'string') return `was ${JSON.stringify(shorten(value))}`
  if (typeof value === 'number') return 'was a number'
  if (Array.isArray(value)) return 'was an array'
  return typeof value === 'object' && value !== null ? 'was an object' : `was ${String(value)}`
}

function text(name: TextName) {
  const error = sentence(name, textRule)
  const isStorable = (value: string) => value.isWellFormed() && !value.includes('\0')
  return z.string({ error }).check(z.refine(isStorable, { error }))
}

const idError = sentence('id', idRule)
const id = z
  .bigint({ error: idError })
  .check(z.minimum(smallestId, { error: idError }), z.maximum(largestId, { error: idError }))
const name = text('name')
const tag = text('tag')
const error = sentence('it', 'an object')

/** The specification's NewPlant, with the contract's rules for ids and texts, and what an import reads instead. */
export const schemas = {
  newPlant: z.object({ id, name, tag: z.optional(tag) }, { error }),
  record: z.object({ id, name, tag: z.nullish(tag) }, { error }),
  patch: z.object({ id, name: z.exactOptional(name), tag: z.nullish(tag) }, { error }),
} satisfies Record<PlantForm, z.ZodMiniType>

/** A sentence for each invalid field. */
export function problemsOf(value: unknown, form: PlantForm = 'newPlant'): string[] {
  const { error } = schemas[form].safeParse(value, { jitless: true })
  return error?.issues.map(({ message }) => message) ?? []
}

export function problemOf(field: FieldName, value: unknown): string | undefined {
  const { error } = { id, name, tag }[field].safeParse(value, { jitless: true })
  return error?.issues[0]?.message
}
