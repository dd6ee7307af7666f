import type { NewPlant } from '../../src/plant/plant.js'
import { fc } from './fast-check.js'

/** Any plant that the contract takes, or one with these texts. */
export function newPlant(texts = text()): fc.Arbitrary<NewPlant> {
  return fc.record({ id: int64(), name: texts, tag: texts }, { requiredKeys: ['id', 'name'] })
}

export function int64(): fc.Arbitrary<bigint> {
  return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
}

/**
 * Well-formed texts without U+0000: of any code points, of letters with their marks, of what means something to a
 * terminal or a shell.
 */
export function text(): fc.Arbitrary<string> {
  const awkward =
    '\u0001\t\n\r\u001b\u007f\u0085\u009b\u00ad\u0301\u061c\u200b\u200d\u2028\u202e\ufeff\uffff\u{1f331}\u{10ffff}"\'\\-=%$ '
  const anyText = fc
    .string({ unit: 'binary', size: 'medium' })
    .map((characters) => characters.replaceAll('\0', ''))
  return fc.oneof(
    anyText,
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: fc.constantFrom(...awkward) }),
  )
}
