import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import { int64, newPlant, text } from '../../helpers/any-plant.js'
import { fc } from '../../helpers/fast-check.js'
import { rounds } from '../../helpers/rounds.js'
import { type Result, runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

type Plants = (argv: string[], stdin?: string | Uint8Array) => Promise<Result>

/** The ways into a store: each creates the plant. */
const doors: Record<string, (plant: NewPlant, plants: Plants, file: string) => Promise<Result>> = {
  flags: ({ id, name, tag }, plants) =>
    plants(['create', `--id=${id}`, `--name=${name}`, ...(tag === undefined ? [] : [`--tag=${tag}`])]),
  file: (plant, plants, file) => {
    writeFileSync(file, jsonOf(plant))
    return plants(['create', '--file', file])
  },
  stdin: (plant, plants) => plants(['create'], jsonOf(plant)),
}

test.each(Object.entries(doors))(
  'any plant that goes in by %s comes out as it was',
  { timeout: rounds(60_000) },
  async (door, create) => {
    const { plants, folder } = world()
    const trip = async ({ id, tag, ...rest }: NewPlant) => {
      // an empty --tag is no tag
      const plant = tag === undefined ? rest : { ...rest, tag }
      const isWarned = door === 'flags' && Object.values(plant).includes('')
      try {
        const answers = [
          await create({ id, ...rest, ...(tag !== undefined && { tag }) }, plants, join(folder, 'plant.json')),
          await plants(['get', String(id)]),
        ]
        expect(answers.map(({ code, out, err }) => ({ code, err, plant: readPlant(out) }))).toEqual([
          { code: 0, err: isWarned ? expect.stringContaining('is empty: the plant gets') : '', plant },
          { code: 0, err: '', plant: { id, ...plant } },
        ])
      } finally {
        await plants(['delete', String(id), '--yes'])
      }
    }
    await fc.assert(fc.asyncProperty(newPlant(), trip), { numRuns: rounds(30) })
    expect(await plants(['list'])).toEqual({ code: 0, out: '', err: '' })
  },
)

test('whatever is piped in is a plant that is stored, or is refused by the contract', {
  timeout: rounds(60_000),
}, async () => {
  const { plants } = world()
  const pipe = async (bytes: Uint8Array) => {
    const { code, out, err } = await plants(['create', '--output', 'json'], bytes)
    const { out: stored } = await plants(['list'])
    if (code === 0) {
      const { id, ...plant } = readPlant(stored)
      await plants(['delete', String(id), '--yes'])
      const { name, tag, ...given } = JSON.parse(decode(bytes))
      expect({ stored: { name, tag, id: given.id + 0 }, answer: { name, tag } }).toEqual({
        stored: { ...plant, id: parseFloat(String(id)) },
        answer: readPlant(out),
      })
    } else expect({ code, out, stored, ...JSON.parse(err) }).toEqual(refusalOf(bytes))
  }
  await fc.assert(fc.asyncProperty(fc.oneof(nearPlants(), anyBytes()), pipe), { numRuns: rounds(100) })
  expect(await plants(['list'])).toEqual({ code: 0, out: '', err: '' })
})

/** What the contract says to bytes that are no plant: 400 when they are no JSON, else 422. */
function refusalOf(bytes: Uint8Array) {
  return {
    code: 2,
    out: '',
    stored: '',
    error: isJson(bytes) ? 422 : 400,
    message: expect.stringMatching(/[^.]$/),
    hint: expect.any(String),
  }
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(decode(bytes))
    return true
  } catch {
    // The only question here is whether it can be read.
    return false
  }
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}

/** Objects that are a NewPlant but for a field or two. */
function nearPlants(): fc.Arbitrary<Uint8Array> {
  const value = fc.jsonValue({ maxDepth: 2 }).map((json) => JSON.stringify(json))
  const number = fc.constantFrom(
    '-0',
    '1.0',
    '1.5',
    '1e3',
    '1e400',
    '0e999999999',
    '1e-999999999',
    '9007199254740993',
    '9223372036854775808',
  )
  const quoted = fc
    .oneof(text(), fc.string({ unit: fc.constantFrom('a', '\0', '\ud83c', '\udf31') }))
    .map((json) => JSON.stringify(json))
  const field = fc.oneof(
    fc.tuple(fc.constantFrom('"id"', '"\\u0069d"'), fc.oneof(int64().map(String), number, value)),
    fc.tuple(fc.constantFrom('"name"', '"tag"'), fc.oneof({ weight: 4, arbitrary: quoted }, value)),
    fc.tuple(quoted, value),
  )
  const plant = fc.tuple(int64().map(String), quoted).map(([id, name]) => [
    ['"id"', id],
    ['"name"', name],
  ])
  const fields = fc
    .tuple(fc.oneof(plant, fc.constant([])), fc.array(field, { maxLength: 3 }))
    .map((lists) => lists.flat())
  return fields.map((members) => Buffer.from(`{${members.map((member) => member.join(':')).join(',')}}`))
}

/** JSON, damaged JSON and bytes of any kind. */
function anyBytes(): fc.Arbitrary<Uint8Array> {
  const json = fc.oneof(
    nearPlants(),
    fc.json({ maxDepth: 4 }).map((line) => Buffer.from(line)),
  )
  const change = fc.tuple(fc.nat(), fc.nat({ max: 2 }), fc.uint8Array({ maxLength: 2 }))
  const damaged = fc.tuple(json, change).map(([bytes, [at, deleted, inserted]]) => {
    const from = at % (bytes.length + 1)
    return Buffer.concat([bytes.subarray(0, from), inserted, bytes.subarray(from + deleted)])
  })
  return fc.oneof(json, damaged, fc.uint8Array({ maxLength: 12 }))
}

function jsonOf({ id, ...plant }: NewPlant): string {
  return JSON.stringify(plant).replace(/^\{/, `{"id":${id},`)
}

/** A line of JSON with its id, when it has one, exact. */
function readPlant(line: string): Partial<NewPlant> {
  const id = /^\{"id":(-?\d+),/.exec(line)?.[1]
  return { ...JSON.parse(line), ...(id === undefined ? {} : { id: BigInt(id) }) }
}

/** One store in a folder of its own. */
function world() {
  const folder = temporaryFolder()
  const env = { PLANTS_DATA_DIR: join(folder, 'data') }
  const plants: Plants = (argv, stdin) => runPlants(argv, stdin === undefined ? { env } : { env, stdin })
  return { plants, folder }
}
