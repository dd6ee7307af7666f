import { acceptNewPlant, isObject, otherFieldsOf, problemsOf } from '../../plant/plant.js'
import type { Place, Portion } from './portion.js'
import { RecordError } from './record-error.js'

/** How the fields of a record become those of a NewPlant. */
export interface FieldRules {
  /** the field of a record for one of a NewPlant, such as `CommonName` for `name`; a field without an entry keeps its name */
  map: Partial<Record<'id' | 'name' | 'tag', string>>
  /** the id of the first record that has none */
  idFrom: bigint | undefined
}

/** Takes what records hold: numbers and renames their fields, checks them, and adds them to a portion. */
export class Intake {
  readonly #rules: FieldRules
  readonly #sources: ReadonlySet<string>
  /** the id of the next record that has none */
  nextId: bigint | undefined

  constructor(rules: FieldRules) {
    this.#rules = rules
    this.#sources = new Set(Object.values(rules.map))
    this.nextId = rules.idFrom
  }

  /** what the id is called in records */
  get idKey(): string {
    return this.#rules.map.id ?? 'id'
  }

  /** Whether a value is taken as it is. */
  get isPlain(): boolean {
    return this.nextId === undefined && Object.keys(this.#rules.map).length === 0
  }

  /** @param value what a record holds, as `tryJson` gives it */
  take(value: unknown, place: Place, portion: Portion): void {
    const fitted = this.isPlain ? value : this.#fit(value)
    const accepted = acceptNewPlant(fitted)
    const otherFields = accepted?.otherFields ?? (isObject(fitted) ? otherFieldsOf(fitted) : [])
    for (const field of otherFields) portion.countField(field)
    if (accepted) portion.addPlant(accepted.plant, place)
    else portion.addProblem(new RecordError('invalid', `Not a NewPlant: ${problemsOf(fitted).join('; ')}`), place)
  }

  #fit(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const fitted = new Map<string, unknown>()
    for (const [key, item] of Object.entries(value))
      if (!this.#sources.has(key)) fitted.set(this.#isMapped(key) ? `${key} (of the input)` : key, item)
    for (const [field, source] of Object.entries(this.#rules.map))
      if (Object.hasOwn(value, source)) fitted.set(field, Reflect.get(value, source))
    if (!fitted.has('id') && this.nextId !== undefined) {
      fitted.set('id', this.nextId)
      this.nextId += 1n
    }
    return Object.fromEntries(fitted)
  }

  /** Whether a field of a NewPlant has another source, so that what is called like it is one that no NewPlant has. */
  #isMapped(key: string): boolean {
    return Object.hasOwn(this.#rules.map, key)
  }
}
