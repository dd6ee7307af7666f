import * as z from 'zod/mini'
import { shorten } from '../platform/escape.js'
import { isInt64, NumberText } from './json.js'
import { type FieldName, idRule, isText, type PlantForm, textRule } from './plant.js'

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

const id = z.custom<bigint>(isInt64, {
  error: ({ input }) => {
    const hasOtherDigits = typeof input === 'string' && /[^\P{Nd}0-9]/u.test(input)
    return sentence('id', hasOtherDigits ? 'in the digits 0 to 9' : idRule)({ input })
  },
})
const name = z.custom<string>(isText, { error: sentence('name', textRule) })
const tag = z.custom<string>(isText, { error: sentence('tag', textRule) })
const error = sentence('it', 'an object')

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
