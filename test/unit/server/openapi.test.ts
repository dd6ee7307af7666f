import { expect, test } from 'vitest'
import * as z from 'zod/mini'
import { errorSchema, plantSchema, schemas } from '../../../src/plant/schema.js'
import document from '../../../src/server/openapi.json'

const described = document.components.schemas

test.each<[string, object, z.ZodMiniType]>([
  ['Plant', described.Plant, plantSchema],
  ['NewPlant', merge(described.NewPlant.allOf), schemas.newPlant],
  ['PlantPatch', described.PlantPatch, z.omit(schemas.patch, { id: true })],
  ['Error', described.Error, errorSchema],
])('the OpenAPI description of %s is that of its schema', (_name, description, schema) => {
  expect(sortKeys(description)).toEqual(sortKeys(toDescription(schema)))
})

/** As JSON Schema, with the formats of OpenAPI in place of the bounds of integers. */
function toDescription(schema: z.ZodMiniType): object {
  const { $schema: _version, ...description } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any', // a bigint, which JSON has as an integer
    override({ zodSchema, jsonSchema }) {
      if (zodSchema._zod.def.type === 'bigint') {
        Object.assign(jsonSchema, { type: 'integer', format: 'int64' })
      } else if (jsonSchema.type === 'integer') {
        delete jsonSchema.minimum
        delete jsonSchema.maximum
        jsonSchema.format = 'int32'
      } else if (jsonSchema.anyOf) {
        const { anyOf } = jsonSchema
        delete jsonSchema.anyOf
        Object.assign(jsonSchema, ...anyOf, { type: anyOf.map(({ type }) => type) })
      }
    },
  })
  return description
}

/** What is required, and all properties, of parts of which one is a reference to Plant. */
function merge(parts: typeof described.NewPlant.allOf): object {
  const own = parts.map((part) => ('$ref' in part ? described.Plant : part))
  return {
    type: 'object',
    required: own.flatMap(({ required }) => required),
    properties: Object.assign({}, ...own.map(({ properties }) => properties)),
  }
}

/** The order of required fields means nothing. */
function sortKeys(description: object): object {
  const { required } = description as { required?: string[] }
  return required ? { ...description, required: required.toSorted() } : description
}
