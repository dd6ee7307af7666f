import { isObject, parseInt64 } from '../../plant/exact-json.js'
import { acceptNewPlant, type FieldName, type Form, invalidPlant, otherFieldsOf } from '../../plant/plant.js'
import { problemsOf } from '../../plant/plant-schema.js'
import { type Chunk, type RecordRange, reason } from './chunk.js'

export interface FieldRules {
  /** such as `CommonName` for `name`; by default the same name, and an empty one is not read */
  map: Partial<Record<FieldName, string>>
  /** of the first record that has none, where `next` is the greatest of the store plus 1; the others count up from it */
  idFrom: bigint | 'next' | undefined
  /** required texts may be missing, and then stay as they are stored */
  isPartial?: boolean
  columns?: readonly string[] | undefined
  /** one ASCII character; by default detected */
  delimiter?: string | undefined
}

export class RecordMapper {
  readonly rules: FieldRules
  readonly #sources: ReadonlySet<string>
  nextId: bigint | undefined
  /** the first id that it assigns, below which are those of the records: of `next` */
  firstId: bigint | undefined
  /** rejected records without an id, or with one such as "A-7" */
  withoutIds = 0

  constructor(rules: FieldRules) {
    this.rules = rules
    this.#sources = new Set(Object.values(rules.map))
    this.nextId = rules.idFrom === 'next' ? 0n : rules.idFrom // until the store is open
  }

  get idKey(): string {
    return this.rules.map.id || 'id'
  }

  get isIdentity(): boolean {
    return this.nextId === undefined && Object.keys(this.rules.map).length === 0
  }

  add(record: unknown, range: RecordRange, chunk: Chunk): void {
    const before = this.nextId
    const mapped = this.isIdentity ? record : this.#map(record)
    for (const field of isObject(mapped) ? otherFieldsOf(mapped) : []) chunk.countField(field)
    const form: Form = this.rules.isPartial ? 'patch' : 'record'
    const patch = acceptNewPlant(mapped, form)
    const { firstId } = this
    if (patch && before === this.nextId && firstId !== undefined && patch.id >= firstId) {
      const limit = `must be below ${firstId}, the first that --id-from next assigns: name a greater one with --id-from`
      chunk.addInvalid(reason('conflict', `The id ${patch.id} ${limit}`), range)
    } else if (patch) chunk.addPlant(patch, range)
    else {
      const id = isObject(mapped) ? (mapped['id'] ?? '') : undefined
      if (typeof id === 'string' && parseInt64(id) === undefined) this.withoutIds += 1
      chunk.addInvalid(reason('invalid', invalidPlant(problemsOf(mapped, form))), range)
    }
  }

  #map(record: unknown): unknown {
    if (!isObject(record)) return record
    const { map } = this.rules
    const mapped = new Map<string, unknown>()
    // A field of the record with the name of a mapped field is an unknown field.
    const sources: Readonly<Record<string, string>> = map
    for (const [key, item] of Object.entries(record))
      if (!this.#sources.has(key) && sources[key] !== '')
        mapped.set(Object.hasOwn(map, key) ? `${key} (of the input)` : key, item)
    for (const [field, source] of Object.entries(map))
      if (source !== '' && Object.hasOwn(record, source)) mapped.set(field, Reflect.get(record, source))
    if (!mapped.has('id') && this.nextId !== undefined) {
      mapped.set('id', this.nextId)
      this.nextId += 1n
    }
    return Object.fromEntries(mapped)
  }
}
