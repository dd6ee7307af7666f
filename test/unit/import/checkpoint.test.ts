import { expect, test } from 'vitest'
import { createCheckpoint } from '../../../src/import/checkpoint.js'
import { type Checkpoint, parseCheckpoint } from '../../../src/import/parse-checkpoint.js'

const begun = createCheckpoint({ source: '{}', firstId: '7', restart: true })
const rejects = { path: '/rejects', file: '1:2', length: 5, rows: 'bad' }
const answers = { encoding: 'latin1', columns: ['id', 'name'], map: { tag: 'Art' }, idFrom: 'next' }
const counts = { created: 1, updated: 0, skipped: 2, rejected: { 400: 3 } }
const stopped = {
  ...begun,
  ...{
    answers,
    position: { input: 1, records: 6, counts, nextId: '9223372036854775808', rejects },
  },
}

test('a checkpoint that is written and read is unchanged', () => {
  const written = [begun, createCheckpoint({ source: '[]' }), stopped]
  const read = written.map((checkpoint) => parseCheckpoint(JSON.stringify(checkpoint)))
  expect(read).toEqual(written.map((checkpoint) => JSON.parse(JSON.stringify(checkpoint))))
})

/** The path of each value in a checkpoint. */
function listPaths(value: unknown, path: string[] = []): string[][] {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return [path, ...entries.flatMap(([key, member]) => listPaths(member, [...path, key]))]
}

function replace(value: unknown, [key, ...rest]: readonly string[], wrong: unknown): unknown {
  if (key === undefined) return wrong
  if (Array.isArray(value))
    return value.map((member, index) =>
      String(index) === key ? replace(member, rest, wrong) : member,
    )
  return { ...(value as object), [key]: replace(Reflect.get(Object(value), key), rest, wrong) }
}

const paths = listPaths(stopped).filter(([field]) => field !== 'version')

test.each(paths.map((path) => ({ field: path.join('.') || 'the whole', path })))(
  'a checkpoint is invalid if $field is of another type',
  ({ path }) => {
    for (const wrong of [null, -1, 1.5, 'x y', [[]], false]) {
      const isText = wrong === 'x y' && typeof findAt(stopped, path) === 'string'
      // Any text may stand for a text, but for an id or a word that an option has.
      const isWord = /Id$|idFrom/.test(path.join('.')) && !path.includes('importId')
      if (isText && !isWord) continue
      expect(parseCheckpoint(JSON.stringify(replace(stopped, path, wrong)))).toBe('invalid')
    }
  },
)

function findAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((member, key) => Reflect.get(Object(member), key), value)
}

test.each<{ text: string; expected: Checkpoint | string }>([
  { text: '{"version":2}', expected: 'otherVersion' },
  { text: '{"version":"1"}', expected: 'invalid' },
  { text: '{"version":1}', expected: 'invalid' },
  { text: '{', expected: 'invalid' },
  { text: 'null', expected: 'invalid' },
])('the checkpoint $text is read as $expected', ({ text, expected }) => {
  expect(parseCheckpoint(text)).toBe(expected)
})

test('the answers of a checkpoint map no field that a record does not have', () => {
  const map = { ...answers, map: { ['__proto__']: 'x', colour: 'y' } }
  expect(parseCheckpoint(JSON.stringify({ ...stopped, answers: map }))).toBe('invalid')
})

test('the answers of a checkpoint set no option that nobody is asked for', () => {
  const others = { ...answers, ifExists: 'update', atomic: true, inputs: [] }
  const checkpoint = parseCheckpoint(JSON.stringify({ ...stopped, answers: others }))
  expect(checkpoint).toMatchObject({ answers })
  expect(checkpoint).not.toHaveProperty('answers.ifExists')
})
