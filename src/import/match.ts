/*
 * Decides which plant of the store each record without an id stands for (`--by-name`), and which
 * plants no record stands for (`--sync`).
 *
 * All records of the inputs are added first. Then the plants of the store pass by, in the order of
 * their ids, so the memory grows with the list, and not with the store. The decision depends only
 * on the inputs and the store, and storing a part of the list does not change the rest:
 * docs/design/imports.md says why this needs the whole list.
 *
 * Names and tags are numbered. A Map has at most 2^24 entries, so two numbers make one exact number.
 */
import { assertDefined } from '../errors.js'
import type { Chunk } from '../fields/chunk.js'
import type { FieldOptions } from '../fields/options.js'
import { largestId } from '../plant/fields.js'
import { foldName } from '../plant/folding.js'
import { isInt64 } from '../plant/json.js'
import { type NewPlant, parsePlant, type StoredPlant } from '../plant/plant.js'

/**
 * What a record without an id stands for:
 *
 * - `equal`: a plant that has its name and its tag.
 * - `different`: a plant that has its name, but not its spelling or its tag.
 * - `new`: no plant of the store. It gets the id.
 * - `unmatched`: no plant of the store, and no greater id is left.
 */
type Match =
  | { type: 'equal' | 'unmatched' }
  | { type: 'different'; plant: StoredPlant }
  | { type: 'new'; id: bigint }

/** A record with an id that occurs more than once in the inputs. */
interface RepeatedRecord {
  name: unknown
  tag: unknown
}

/** The matches of all records without ids. */
export class Matches {
  /** For each record that has a plant, its match. */
  readonly #matches: (Match | undefined)[]
  /** The ids that occur more than once, with the first record of each that was mapped. */
  readonly #repeatedIds: Map<bigint, RepeatedRecord | undefined>
  #next = 0

  /** How many records equal an earlier one. */
  repeatedCount = 0
  /** Whether a record of the inputs has a tag. If none has, the list says nothing about tags. */
  hasTags = false
  /** With `update`, the plants that equal the record with their id. */
  readonly equalIds = new Set<bigint>()
  /** How many plants of the store no record stands for. */
  missingCount = 0
  /** The greatest id of the store, of the inputs and of the new records that were taken. */
  lastId = 0n
  /** These plants, which `--sync` deletes. */
  readonly missingPlants: StoredPlant[] = []

  constructor(recordCount: number, repeatedIds: ReadonlySet<bigint>) {
    this.#matches = new Array(recordCount)
    this.#repeatedIds = new Map(Array.from(repeatedIds, (id) => [id, undefined]))
  }

  /**
   * Compares a record with the first one of its id, and keeps it if it is that one.
   *
   * @returns whether they have the same name and tag
   */
  compareWithFirst(id: bigint, record: RepeatedRecord): boolean {
    if (!this.#repeatedIds.has(id)) return true
    const first = this.#repeatedIds.get(id) ?? record
    this.#repeatedIds.set(id, first)
    return first.name === record.name && (first.tag ?? null) === (record.tag ?? null)
  }

  isMatched(record: number): boolean {
    return this.#matches[record] !== undefined
  }

  set(record: number, match: Match): void {
    this.#matches[record] = match
  }

  /**
   * Takes the match of the next record without an id, in the order of the inputs. A record without
   * a plant gets an id above all ids of the store and of the inputs.
   */
  take(): Match {
    const match = this.#matches[this.#next]
    this.#next += 1
    if (match) return match
    if (this.lastId === largestId) return { type: 'unmatched' }
    this.lastId += 1n
    return { type: 'new', id: this.lastId }
  }
}

interface MatchOptions extends Pick<FieldOptions, 'byName' | 'ifExists'> {
  sync?: true
}

export class RecordMatcher {
  /** The numbers of the names as they are written, and as gardeners write them. */
  readonly #names = new Map<string, number>()
  readonly #foldedNames = new Map<string, number>()
  readonly #tags = new Map<string | undefined, number>()
  /** The numbers of the folded name and the tag of each record without an id. */
  readonly #nameOfRecord: number[] = []
  readonly #tagOfRecord: number[] = []
  /**
   * The last of the records that have a written name and a tag, and no plant yet, and for each of
   * them the next one. Behind the last one comes the first.
   */
  readonly #lastEqual = new Map<number, number>()
  readonly #nextEqual: number[] = []
  /** Without `update`, the ids of records with their names. */
  readonly #claims = new Set<string>()
  /** With `update`, the ids of records, and the name and the tag that all records of an id have. */
  readonly #claimedIds = new Map<bigint, number>()
  /** The ids that occur more than once. */
  readonly #repeatedIds = new Set<bigint>()
  /** The plants that have the name of a record, and equal none. */
  readonly #otherPlants: StoredPlant[] = []
  #greatestId: bigint | undefined
  #hasTags = false
  /** Whether a record with an id has an empty tag. */
  #hasEmptyTags = false
  #repeatedCount = 0
  /** How many records the inputs have. */
  recordCount = 0

  constructor(private readonly options: MatchOptions) {}

  /** Adds the records of an input, one chunk after the other. */
  addChunk(chunk: Chunk): void {
    this.recordCount += chunk.length
    for (const [index, id] of chunk.ids.entries()) {
      if ((chunk.tags[index] ?? undefined) !== undefined) this.#hasTags = true
      if (isInt64(id)) this.#addClaim(id, chunk, index)
      const plant = this.options.byName && parseWithoutId(chunk, index)
      if (plant) this.#addRecord(plant)
    }
  }

  /** Without `update`, a record whose plant has another name is rejected or skipped. */
  #addClaim(id: bigint, { names, tags, problems }: Chunk, index: number): void {
    this.#raiseGreatestId(id)
    const { ifExists, sync } = this.options
    const [name, tag] = [names[index], tags[index]]
    if (ifExists !== 'update') {
      if (typeof name === 'string') this.#claims.add(formatClaim(id, name))
      return
    }
    if (tag === null) this.#hasEmptyTags = true
    const hasFields = typeof name === 'string' && (typeof tag === 'string' || tag == null)
    const isComplete = hasFields && !problems.has(index)
    const key = isComplete ? this.#addKey(name, tag ?? undefined) : noKey
    const firstKey = this.#claimedIds.get(id)
    if (firstKey === undefined) this.#claimedIds.set(id, key)
    else if (sync) this.#repeatedIds.add(id)
    // If a plant equals one of two records, the other one changes it.
    else if (firstKey !== key) this.#claimedIds.set(id, noKey)
  }

  #isClaimed({ id, name }: StoredPlant): boolean {
    if (this.#claims.size > 0) return this.#claims.has(formatClaim(id, name))
    return this.#claimedIds.has(id)
  }

  /** Numbers a name and a tag. */
  #addKey(name: string, tag: string | undefined): number {
    return joinNumbers(addNumber(this.#names, name), addNumber(this.#tags, tag))
  }

  #raiseGreatestId(id: bigint): void {
    if (this.#greatestId === undefined || id > this.#greatestId) this.#greatestId = id
  }

  #addRecord({ name, tag }: NewPlant): void {
    const record = this.#nameOfRecord.length
    const key = this.#addKey(name, tag)
    this.#nameOfRecord.push(addNumber(this.#foldedNames, foldName(name)))
    this.#tagOfRecord.push(assertDefined(this.#tags.get(tag)))
    const last = this.#lastEqual.get(key)
    this.#lastEqual.set(key, record)
    if (last === undefined) {
      this.#nextEqual.push(record)
      return
    }
    this.#repeatedCount += 1
    this.#nextEqual.push(assertDefined(this.#nextEqual[last]))
    this.#nextEqual[last] = record
  }

  /** @param plants all plants of the store, in the order of their ids */
  async match(
    plants: AsyncIterable<readonly StoredPlant[]> | Iterable<readonly StoredPlant[]>,
  ): Promise<Matches> {
    const matches = new Matches(this.#nameOfRecord.length, this.#repeatedIds)
    matches.repeatedCount = this.#repeatedCount
    matches.hasTags = this.#hasTags
    for await (const page of plants) for (const plant of page) this.#matchEqual(plant, matches)
    this.#matchDifferent(matches)
    matches.lastId = this.#greatestId ?? 0n
    return matches
  }

  #matchEqual(plant: StoredPlant, matches: Matches): void {
    const { id, name } = plant
    this.#raiseGreatestId(id)
    const key = this.#findKey(plant)
    if (this.#isClaimed(plant)) {
      // An empty cell of a record with an id removes the tag.
      const ownKey = this.#hasEmptyTags ? this.#findKey(plant, true) : key
      if (ownKey !== undefined && ownKey === this.#claimedIds.get(id)) matches.equalIds.add(id)
      return
    }
    const record = key === undefined ? undefined : this.#takeEqual(key)
    if (record !== undefined) matches.set(record, equalMatch)
    else if (this.#foldedNames.size > 0 && this.#foldedNames.has(foldName(name)))
      this.#otherPlants.push(plant)
    else this.#addMissing(plant, matches)
  }

  /** Takes the first record that equals a plant, and has none yet. */
  #takeEqual(key: number): number | undefined {
    const last = this.#lastEqual.get(key)
    if (last === undefined) return undefined
    const record = assertDefined(this.#nextEqual[last])
    if (record === last) this.#lastEqual.delete(key)
    else this.#nextEqual[last] = assertDefined(this.#nextEqual[record])
    return record
  }

  /** Finds the numbers of the name and the tag of a plant, if records have them. */
  #findKey({ name, tag }: StoredPlant, comparesTags?: boolean): number | undefined {
    const nameNumber = this.#names.get(name)
    const tagNumber = this.#findTag(tag, comparesTags)
    if (nameNumber === undefined || tagNumber === undefined) return undefined
    return joinNumbers(nameNumber, tagNumber)
  }

  /** Finds the number of a tag. In a list without tags, each tag is like none. */
  #findTag(tag: string | undefined, comparesTags = this.#hasTags): number | undefined {
    return this.#tags.get(comparesTags ? tag : undefined)
  }

  /** Pairs the other plants with records of their names: first by equal tags, then in order. */
  #matchDifferent(matches: Matches): void {
    const plantsByTag = new Map<number, StoredPlant[]>()
    const plantsByName = new Map<number, StoredPlant[]>()
    // The first plant of each list is taken first, which is its last item.
    for (const plant of this.#otherPlants.toReversed()) {
      const nameNumber = assertDefined(this.#foldedNames.get(foldName(plant.name)))
      const tagNumber = this.#findTag(plant.tag)
      addToList(plantsByName, nameNumber, plant)
      if (tagNumber !== undefined) addToList(plantsByTag, joinNumbers(nameNumber, tagNumber), plant)
    }
    const pairedPlants = new Set<StoredPlant>()
    const pair = (findPlants: (record: number) => StoredPlant[] | undefined) => {
      for (const record of this.#nameOfRecord.keys()) {
        const plants = matches.isMatched(record) ? undefined : findPlants(record)
        let plant = plants?.pop()
        while (plant && pairedPlants.has(plant)) plant = plants?.pop()
        if (!plant) continue
        pairedPlants.add(plant)
        matches.set(record, { type: 'different', plant })
      }
    }
    const getName = (record: number) => assertDefined(this.#nameOfRecord[record])
    const getTag = (record: number) => assertDefined(this.#tagOfRecord[record])
    pair((record) => plantsByTag.get(joinNumbers(getName(record), getTag(record))))
    pair((record) => plantsByName.get(getName(record)))
    for (const plant of this.#otherPlants)
      if (!pairedPlants.has(plant)) this.#addMissing(plant, matches)
  }

  #addMissing(plant: StoredPlant, matches: Matches): void {
    matches.missingCount += 1
    if (this.options.sync) matches.missingPlants.push(plant)
  }
}

/**
 * Parses a record without an id, which a match may be taken for.
 *
 * @returns the fields with an id that means nothing; undefined for any other record, and if the
 *   fields are not valid
 */
export function parseWithoutId(
  { ids, names, tags, problems }: Chunk,
  index: number,
): NewPlant | undefined {
  if (problems.has(index) || (ids[index] ?? null) !== null) return undefined
  return parsePlant({ id: 0n, name: names[index], tag: tags[index] ?? undefined })
}

/** The match of each record that equals its plant. */
const equalMatch: Match = { type: 'equal' }

/** The key of a name and a tag that no plant has. */
const noKey = -1

function formatClaim(id: bigint, name: string): string {
  return `${id} ${foldName(name)}`
}

/** @returns the number of the key, which is added with the next number if it is new */
function addNumber<Key extends string | undefined>(numbers: Map<Key, number>, key: Key): number {
  const number = numbers.get(key) ?? numbers.size
  // In V8, a substring keeps the string from which it was cut in memory, here a block of the input.
  // A copy does not.
  if (number === numbers.size) numbers.set((key && Buffer.from(key).toString()) as Key, number)
  return number
}

function joinNumbers(first: number, second: number): number {
  return first * 2 ** 24 + second
}

function addToList(lists: Map<number, StoredPlant[]>, key: number, plant: StoredPlant): void {
  const list = lists.get(key)
  if (list) list.push(plant)
  else lists.set(key, [plant])
}
