export const fieldNames = ['id', 'name', 'tag'] as const
export type FieldName = (typeof fieldNames)[number]
export type TextName = 'name' | 'tag'

export const smallestId = -(2n ** 63n)
export const largestId = 2n ** 63n - 1n

export const idRule = `an integer from ${smallestId} to ${largestId}`

/** Whether every store can keep a value as a name or a tag: PostgreSQL rejects U+0000. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}
