export const fieldNames = ['id', 'name', 'tag'] as const
export type FieldName = (typeof fieldNames)[number]
export type StringFieldName = 'name' | 'tag'

export const smallestId = -(2n ** 63n)
export const largestId = 2n ** 63n - 1n

export const idRule = `an integer from ${smallestId} to ${largestId}`

/**
 * Returns true for a string that every store can keep as a name or a tag. PostgreSQL rejects
 * U+0000, and UTF-8 cannot encode half of a surrogate pair.
 */
export function isStorableString(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}
