import { expect, test } from 'vitest'
import { PlantsError } from '../../src/errors.js'
import { parseObjects, Sandbox } from '../helpers/sandbox/sandbox.js'

// What the command prints is in transcripts/plants.txt, and how each kind of store counts in
// contract.

async function createUser(names: readonly string[]): Promise<Sandbox> {
  const user = new Sandbox()
  const plants = names.map((name, index) => ({ id: index + 1, name, tag: 'wet' }))
  expect((await user.run('import', { stdin: JSON.stringify(plants) })).code).toBe(0)
  return user
}

test('a count by field ends on a signal', async () => {
  const user = await createUser(['Fern'])
  const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted'))
  const result = await user.run('count --by tag', { signal })
  expect(result).toEqual({ code: 130, out: '', err: 'plants: Interrupted\n' })
})
test.each([
  ['text', 'TAG  COUNT\n'],
  ['json', '[\n]\n'],
  ['ndjson', ''],
  ['tsv', 'tag\tcount\n'],
])('a count by field of an empty store is written as %s', async (format, out) => {
  // A hint on stderr says how a store comes into being.
  const result = await new Sandbox().run(`count --by tag --output ${format}`)
  expect(result).toMatchObject({ code: 0, out })
})

test('a count by field sorts strings with equal counts as a list does, also beyond U+FFFF', async () => {
  const names = [
    '🌿',
    '\uffff',
    'b',
    'B',
    'ä',
    'A',
    'a',
    '',
    '𐐀',
    '𐐨',
    'ﬆ',
    'a🌿',
    'a\uffff',
    'ß',
    'ss',
  ]
  const user = await createUser(names)
  const listed = parseObjects((await user.run('list --sort name')).out)
  const counted = parseObjects((await user.run('count --by name')).out)
  expect(counted).toEqual(listed.map(({ name }) => ({ name, count: 1 })))
})

test.each([
  ['ndjson', (name: string) => `{"name":"${name}","count":1}\n`],
  ['csv', (name: string) => `${name},1\n`],
])(
  'a count by field with more than one block of strings writes each string once as %s',
  async (format, write) => {
    const names = Array.from({ length: 2500 }, (_, index) => `Fern ${10_000 + index}`)
    const user = await createUser(names)
    const { out } = await user.run(`count --by name --output ${format}`)
    const header = format === 'csv' ? 'name,count\n' : ''
    expect(out).toBe(header + names.map(write).join(''))
  },
)
