import fc from 'fast-check'
import type { NewPlant } from '../../../src/plant/plant.js'
import { scaleRounds, seed } from '../sandbox/rounds.js'

// A failure is reported with its seed and its path, which repeat it.
fc.configureGlobal({ seed })

export { fc }

/** Checks that a property holds for random values: `times` of them, and more in a soak test. */
export function check<Values extends [unknown, ...unknown[]]>(
  times: number,
  arbitraries: { [At in keyof Values]: fc.Arbitrary<Values[At]> },
  holds: (...values: Values) => unknown,
): Promise<void> {
  const values = fc.tuple<Values>(...arbitraries)
  const property = fc.asyncProperty(
    values,
    async (randomValues) => void (await holds(...randomValues)),
  )
  return fc.assert(property, { numRuns: scaleRounds(times) })
}

export function generateNewPlant(texts = generateText()): fc.Arbitrary<NewPlant> {
  return fc.record(
    { id: generateInt64(), name: texts, tag: texts },
    { requiredKeys: ['id', 'name'] },
  )
}

export function generateInt64(): fc.Arbitrary<bigint> {
  return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
}

/** Generates any code point. The unit `binary` of fast-check takes a second to start. */
export function generateCharacter(): fc.Arbitrary<string> {
  const point = fc.nat({ max: 0x10ffff })
  return point
    .map((code) => String.fromCodePoint(code))
    .filter((candidate) => candidate.isWellFormed())
}

/** Generates texts without U+0000, also with characters that terminals and shells interpret. */
export function generateText(): fc.Arbitrary<string> {
  const awkward =
    '\u0001\t\n\r\u001b\u007f\u0085\u009b\u00ad\u0301\u061c\u200b\u200d\u2028\u202e\ufeff\uffff\u{1f331}\u{10ffff}"\'\\-=%$ '
  const anyText = fc.string({ unit: generateCharacter(), size: 'medium' })
  return fc.oneof(
    anyText.map((characters) => characters.replaceAll('\0', '')),
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: fc.constantFrom(...awkward) }),
  )
}
