import { expect, test } from 'vitest'
import { documents } from '../../helpers/bad-plants.js'
import { expectRefusal, titleOf } from '../../helpers/refusals.js'
import { refusal, World } from '../../helpers/world.js'

test.each(documents.map((row) => [titleOf(row[0]), row] as const))('rejects %s', async (_, row) => {
  await expectRefusal(row)
})

// The other messages about files are in transcripts/usage.txt.
test.each([
  [
    ' '.repeat(1_048_577),
    'is larger than 1 MiB (1048576 bytes)',
    'plants create takes one plant. For many, use plants import',
  ],
  [Uint8Array.of(0x22, 0xff, 0x22), 'is not UTF-8', 'Convert it from its encoding to UTF-8 first'],
  [Buffer.from('\ufeff{"id":1,"name":"Fern"}', 'utf16le'), 'is not UTF-8', 'Convert it from UTF-16 to UTF-8 first'],
])('rejects a file: %#', async (content, why, hint) => {
  const user = new World()
  expect(await user.run(['create', '--file', user.write('a', content)])).toEqual(refusal(`a ${why}`, hint))
  expect(user.has('data')).toBe(false)
})

test('rejects a name of a file that is too long', async () => {
  const name = 'x'.repeat(256)
  const message = `Could not read ${name}: its name is too long`
  expect(await new World().run(['create', '--file', name])).toEqual(
    refusal(message, 'Use a file that contains one plant as JSON'),
  )
})
