import { PlantsError } from '../errors.js'
import { checkNewPlant } from '../plant.js'
import type { Place, Portion } from './portion.js'

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
  /** the id of the next record that has none */
  nextId: bigint | undefined

  constructor(rules: FieldRules) {
    this.#rules = rules
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

  /** @param value what a record holds, as `parseJson` gives it */
  take(value: unknown, place: Place, portion: Portion): void {
    const checked = checkNewPlant(this.isPlain ? value : this.#fit(value))
    for (const field of checked.otherFields) portion.otherFields.set(field, (portion.otherFields.get(field) ?? 0) + 1)
    if ('plant' in checked) portion.addPlant(checked.plant, place)
    else portion.addProblem(new PlantsError('invalid', `Not a NewPlant: ${checked.problems.join('; ')}`), place)
  }

  #fit(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const fitted = Object.fromEntries(Object.entries(value).map(([key, item]) => [this.#nameOf(key), item]))
    if (fitted['id'] !== undefined || this.nextId === undefined) return fitted
    const id = this.nextId
    this.nextId += 1n
    return { ...fitted, id }
  }

  /** What a field is called in a NewPlant; one whose name is taken by another becomes one of the fields that no NewPlant has. */
  #nameOf(key: string): string {
    const [field] = Object.entries(this.#rules.map).find(([, source]) => source === key) ?? []
    return field ?? (Object.hasOwn(this.#rules.map, key) ? `${key} (of the input)` : key)
  }
}
