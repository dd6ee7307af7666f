import { test } from 'vitest'
import { bytes, convertFrom, documents, example, giveFlags, limit, onePlant } from '../../helpers/bad-plants.js'
import { expectRefusal, type Refusal, titleOf } from '../../helpers/refusals.js'

const fileHint = 'Use a file that contains one plant as JSON'
const files: Refusal[] = [
  [{ argv: 'create' }, 2, 400, 'Stdin is empty', giveFlags],
  [{ argv: 'create --file - --id 1' }, 2, 400, 'Stdin is empty', giveFlags],
  [{ argv: 'create --file no.json' }, 2, 400, 'Could not read no.json: there is no such file', fileHint],
  [{ argv: 'create --file .' }, 2, 400, 'Could not read .: it is a directory', fileHint],
  [
    { argv: 'create --file a/fern.json', files: { a: '{}' } },
    2,
    400,
    'Could not read a/fern.json: a part of its path is not a directory',
    fileHint,
  ],
  [{ argv: ['create', '--file', ''] }, 2, 400, '--file needs a path', 'To read stdin: --file -'],
  [{ argv: 'create --file= --id 1 --name Fern' }, 2, 400, '--file needs a path', 'To read stdin: --file -'],
  [
    { argv: ['create', '--file', 'x'.repeat(256)] },
    2,
    400,
    `Could not read ${'x'.repeat(256)}: its name is too long`,
    fileHint,
  ],
  [{ argv: 'create --file a', files: { a: '' } }, 2, 400, 'a is empty', example],
  [{ argv: 'create --file a', files: { a: '\ufeff\r\n' } }, 2, 400, 'a is empty', example],
  [
    { argv: 'create --file a', files: { a: ' '.repeat(limit + 1) } },
    2,
    413,
    'a is larger than 1 MiB (1048576 bytes)',
    onePlant,
  ],
  [
    { argv: 'create --file a', files: { a: '{"id":1,' } },
    2,
    400,
    'a is not JSON: unexpected end of input at line 1, column 9',
    example,
  ],
  [
    { argv: 'create --file a', files: { a: '{}\n{}' } },
    2,
    400,
    'a contains more than one JSON value, the second at line 2, column 1',
    onePlant,
  ],
  [
    { argv: 'create --file a', files: { a: '{"id":1,"name":"Fern"}\ntag' } },
    2,
    400,
    'a is not JSON: unexpected "t" at line 2, column 1',
    example,
  ],
  [
    { argv: 'create --file a', files: { a: bytes(0x22, 0xff, 0x22) } },
    2,
    400,
    'a is not UTF-8',
    convertFrom('its encoding'),
  ],
  [
    { argv: 'create --file a', files: { a: Buffer.from('\ufeff{"id":1,"name":"Fern"}', 'utf16le') } },
    2,
    400,
    'a is not UTF-8',
    convertFrom('UTF-16'),
  ],
  [
    { argv: 'create --file a', files: { a: '[]' } },
    2,
    422,
    'Invalid plant: it must be an object, but was an array',
    onePlant,
  ],
  [
    { argv: 'create --file a --id 1', files: { a: '[]' } },
    2,
    422,
    'Invalid plant: it must be an object, but was an array',
    onePlant,
  ],
  [
    { argv: 'create --file a --id 1', files: { a: 'null' } },
    2,
    422,
    'Invalid plant: it must be an object, but was null',
    example,
  ],
  [
    { argv: 'create --file a --id 1', files: { a: '{"id":"x","name":5}' } },
    2,
    422,
    'Invalid plant: name must be a string, but was a number',
    example,
  ],
  [
    { argv: 'create --file a --id 1', files: { a: '{"id":"x","nmae":5}' } },
    2,
    422,
    'Invalid plant: name must be a string, but is missing',
    `${example}. Unknown fields: "nmae"`,
  ],
]

test.each([...documents, ...files].map((row) => [titleOf(row[0]), row] as const))('refuses %s', async (_, row) => {
  await expectRefusal(row)
})
