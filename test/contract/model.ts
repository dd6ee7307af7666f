import type { FieldName } from '../../src/plant/fields.js'
import {
  applyPatch,
  buildPlant,
  haveEqualNameAndTag,
  type NewPlant,
} from '../../src/plant/plant.js'
import { type Change, type Create, getTargetId, type Update } from '../../src/stores/change.js'
import type { ReadQuery } from '../../src/stores/query.js'
import { fc } from '../helpers/expect/arbitraries.js'

interface Stored {
  plant: NewPlant
  key: string | undefined
}

/** The outcomes of changes by the rules of a store, computed as simply as possible. */
export class Model {
  readonly #stored = new Map<bigint, Stored>()
  readonly #isService: boolean

  constructor({ isService }: { isService: boolean }) {
    this.#isService = isService
  }

  get plants(): NewPlant[] {
    const plants = Array.from(this.#stored.values(), ({ plant }) => plant)
    return plants.toSorted((one, other) => (one.id < other.id ? -1 : 1))
  }

  /** The type of the outcome, or the `error` of a rejected change. */
  apply(change: Change): string | number {
    const stored = this.#stored.get(getTargetId(change))
    if (change.type === 'create') return this.#create(change, stored)
    if (change.type === 'update') return this.#update(change, stored)
    return this.#stored.delete(change.id) ? 'deleted' : 404
  }

  #create({ plant, key, ifExists }: Create, stored: Stored | undefined): string | number {
    if (!stored) {
      this.#stored.set(plant.id, { plant, key })
      return 'created'
    }
    const isEqual = haveEqualNameAndTag(plant, stored.plant)
    if (isEqual && key !== undefined && key === stored.key) return 'created'
    return ifExists === 'skip' || (ifExists === 'same' && isEqual) ? 'skipped' : 409
  }

  #update({ patch, ifMissing }: Update, stored: Stored | undefined): string | number {
    const plant = applyPatch(patch, stored?.plant)
    if (!stored && ifMissing !== 'create') return 404
    if (!plant) return 422
    // To repeat an import changes nothing. A service cannot know that a PATCH is one.
    const isRepetition =
      ifMissing === 'create' && stored && haveEqualNameAndTag(plant, stored.plant)
    const isEmpty = Object.keys(patch).length === 1
    const keepsKey = isEmpty || (isRepetition && !this.#isService)
    this.#stored.set(patch.id, { plant, key: keepsKey ? stored?.key : undefined })
    return stored ? 'updated' : 'created'
  }
}

/** Changes of few plants, with few texts and keys, so that many of them meet. */
export function anyChanges(): fc.Arbitrary<Change[]> {
  const id = fc.bigInt({ min: 0n, max: 15n })
  const text = fc.constantFrom('', 'a', "b\\'\n")
  const key = fc.constantFrom(undefined, 'k', 'l')
  const create: fc.Arbitrary<Change> = fc.record({
    type: fc.constant('create'),
    plant: fc.record(
      { id, name: text, tag: text },
      { requiredKeys: ['id', 'name'], noNullPrototype: true },
    ),
    key,
    ifExists: fc.constantFrom(undefined, 'skip', 'same'),
  })
  const tag = fc.oneof(text, fc.constant(null))
  const update: fc.Arbitrary<Change> = fc.record({
    type: fc.constant('update'),
    patch: fc.record({ id, name: text, tag }, { requiredKeys: ['id'] }),
    ifMissing: fc.constantFrom('error', 'create'),
  })
  const deletion: fc.Arbitrary<Change> = fc.record({ type: fc.constant('delete'), id })
  return fc.array(fc.oneof({ weight: 3, arbitrary: create }, update, deletion), {
    minLength: 1,
    maxLength: 39,
  })
}

const selectedTexts = ['', 'a', 'Ä', 'a\u0308', 'Äa\u0308', 'ß', 'SS', 'Σς', '\uffff', '🌿', 'a%_']

/** Plants with each name and each tag, and as many without a tag. */
export const selectedPlants: NewPlant[] = [...selectedTexts, undefined].flatMap((tag, row) =>
  selectedTexts.map((name, column) => buildPlant(BigInt(11 * row + column - 60), name, tag)),
)

/** Queries of which many select some of the plants. A service sorts only by id. */
export function anyQuery(sorts: readonly FieldName[] = ['id']): fc.Arbitrary<ReadQuery> {
  const text = fc.constantFrom(...selectedTexts)
  return fc.record(
    {
      after: fc.bigInt({ min: -62n, max: 80n }),
      limit: fc.integer({ min: 1, max: 40 }),
      tag: fc.oneof(text, fc.constant(false as const)),
      search: text,
      sort: fc.constantFrom(...sorts),
      desc: fc.boolean(),
    },
    { requiredKeys: [] },
  )
}
