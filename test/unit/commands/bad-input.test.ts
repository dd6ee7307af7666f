import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exchange } from '../../helpers/raw-http.js'
import { type Result, runPlants } from '../../helpers/run.js'
import { serveForAll, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

/** What is given: the arguments, which a text separates with spaces, and what is on stdin and in files. */
interface Given {
  argv: string | string[]
  stdin?: string | Uint8Array
  files?: Record<string, string | Uint8Array>
  env?: Record<string, string>
}

type Row = [given: Given, code: number, error: number, message: string, hint?: string]

const fern = ['create', '--id', '1', '--name', 'Fern']
const seedling = '\u{1f331}'
const int64 = 'an integer from -9223372036854775808 to 9223372036854775807'
const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'
const onePlant = 'plants create takes one plant. For many, use plants import'
const orFile = ', or give a file of JSON with --file PATH'
const orStdin = ', or read JSON from stdin with --file -'

/** Each is given as the id in a flag and as an argument. */
const wrongIds: Row[] = [
  '9223372036854775808',
  '-9223372036854775809',
  '1.5',
  '-5.5',
  '1.0000000000000000001',
  '1e400',
  '1e19',
  '1e-1',
  '1e999999999',
  '-1e999999999',
  '1e-999999999',
  '0x10',
  '0b1',
  ' 1',
  '1 ',
  '1\n',
  '+1',
  '1_000',
  '1,000',
  '007',
  '-00',
  '.5',
  '-.5',
  '5.',
  '1e',
  '1e+',
  '1n',
  '"1"',
  '',
  '-',
  'NaN',
  'Infinity',
  'null',
  'true',
  '\u0661', // an Arabic digit
  '\uff11', // a fullwidth digit
  '\u22121', // a minus sign that is no hyphen
  'a\u001b[2J',
].flatMap((text): Row[] => [
  [
    { argv: ['create', '--id', text, '--name', 'Fern'] },
    2,
    422,
    `Not a NewPlant: id must be ${int64}, but was ${JSON.stringify(text)}`,
    `Correct the flags${orFile}`,
  ],
  [{ argv: ['get', text] }, 2, 400, `id must be ${int64}, but was ${JSON.stringify(text)}`, 'For example: 1'],
])

const flags: Row[] = [
  [{ argv: 'create --id 1' }, 2, 422, 'Not a NewPlant: name must be a string, but is missing', `Give --name TEXT${orFile}`],
  [{ argv: 'create --name Fern' }, 2, 422, `Not a NewPlant: id must be ${int64}, but is missing`, `Give --id NUMBER${orFile}`],
  [
    { argv: 'create --tag shade' },
    2,
    422,
    `Not a NewPlant: id must be ${int64}, but is missing; name must be a string, but is missing`,
    `Give --id NUMBER and --name TEXT${orFile}`,
  ],
  [
    { argv: 'create --id x' },
    2,
    422,
    `Not a NewPlant: id must be ${int64}, but was "x"; name must be a string, but is missing`,
    `Give --name TEXT${orFile}`,
  ],
  [
    { argv: 'create --id 1', stdin: '{"id":1,"name":"Fern"}' },
    2,
    422,
    'Not a NewPlant: name must be a string, but is missing',
    `Give --name TEXT${orStdin}`,
  ],
  [
    { argv: ['create', '--id', 'x'.repeat(41), '--name', 'Fern'] },
    2,
    422,
    `Not a NewPlant: id must be ${int64}, but was "${'x'.repeat(39)}…"`,
    `Correct the flags${orFile}`,
  ],
  [
    { argv: ['create', '--id', `${'x'.repeat(38)}${seedling.repeat(3)}`, '--name', 'Fern'] },
    2,
    422,
    `Not a NewPlant: id must be ${int64}, but was "${'x'.repeat(38)}${seedling}…"`,
    `Correct the flags${orFile}`,
  ],
  [
    { argv: ['create', '--id', seedling.repeat(41), '--name', 'Fern'] },
    2,
    422,
    `Not a NewPlant: id must be ${int64}, but was "${seedling.repeat(39)}…"`,
    `Correct the flags${orFile}`,
  ],
  [
    { argv: ['create', '--id', seedling.repeat(21), '--name', 'Fern'] },
    2,
    422,
    `Not a NewPlant: id must be ${int64}, but was "${seedling.repeat(21)}"`,
    `Correct the flags${orFile}`,
  ],
  [
    { argv: ['create', '--id', '1', '--name', '\ud800'] },
    2,
    422,
    'Not a NewPlant: name must be well-formed Unicode, but holds half of a surrogate pair',
    `Correct the flags${orFile}`,
  ],
  [{ argv: 'create --name Fern --id' }, 2, 400, '--id needs a value', 'See: plants create --help'],
  [{ argv: 'create --id 1 --name' }, 2, 400, '--name needs a value', 'See: plants create --help'],
  [{ argv: 'create --file' }, 2, 400, '--file needs a value', 'See: plants create --help'],
  [{ argv: 'list --store' }, 2, 400, '--store needs a value', 'See: plants list --help'],
  [
    { argv: 'create --id --name Fern' },
    2,
    400,
    '--id needs a value, but --name follows',
    'For a value that begins with a dash: --id=--name',
  ],
  [
    { argv: 'create --name --tag x' },
    2,
    400,
    '--name needs a value, but --tag follows',
    'For a value that begins with a dash: --name=--tag',
  ],
  [{ argv: 'create --id -x' }, 2, 400, '--id needs a value, but -x follows', 'For a value that begins with a dash: --id=-x'],
  [
    { argv: 'create --id -Infinity --name Fern' },
    2,
    400,
    '--id needs a value, but -Infinity follows',
    'For a value that begins with a dash: --id=-Infinity',
  ],
  [{ argv: 'create --file -- x' }, 2, 400, '--file needs a value, but -- follows', 'For a value that begins with a dash: --file=--'],
  ...['x', '', '-1', '1e3', '1 s', '5w', '1.2345', '.5', '+1', '\u221e', '9999999999'].map(
    (text): Row => [
      { argv: ['list', '--timeout', text] },
      2,
      400,
      `--timeout must be a duration such as 30s, 500ms or 2m, but was "${text}"`,
      'For example: --timeout 30s',
    ],
  ),
  ...['x', '', '0', '-1', '1.5', '1e3', '01', '9007199254740992', '99999999999999999'].map(
    (text): Row => [
      { argv: ['list', '--limit', text] },
      2,
      400,
      `--limit must be a whole number from 1 to 9007199254740991, but was "${text}"`,
      'For example: --limit 10',
    ],
  ),
  ...['x', '', '1.5', '+1', '9223372036854775808'].map(
    (text): Row => [{ argv: ['list', '--after', text] }, 2, 400, `--after must be ${int64}, but was "${text}"`, 'For example: --after 1'],
  ),
  ...[
    ['', 'was ""'],
    ['a b', 'was "a b"'],
    ['a\tb', 'was "a\\tb"'],
    ['a\n', 'was "a\\n"'],
    ['\u00e9', 'was "\u00e9"'],
    ['\u007f', 'was "\u007f"'],
    ['k'.repeat(256), 'has 256'],
  ].map(
    ([key = '', failure]): Row => [
      { argv: ['create', '--id', '1', '--name', 'Fern', '--idempotency-key', key] },
      2,
      400,
      `--idempotency-key must be 1 to 255 visible ASCII characters, but ${failure}`,
      'A key that fits: --idempotency-key "$(uuidgen)"',
    ],
  ),
  [{ argv: 'delete 1' }, 2, 400, 'Deleting the plant 1 needs a yes', 'To delete it without a question, add --yes'],
  [{ argv: 'delete x --yes' }, 2, 400, `id must be ${int64}, but was "x"`, 'For example: 1'],
]

const createHelp = 'See: plants create --help'
const usage: Row[] = [
  [{ argv: 'create --nmae Fern' }, 2, 400, 'Unknown option --nmae', 'Did you mean --name?'],
  [{ argv: 'list --timeuot 5s' }, 2, 400, 'Unknown option --timeuot', 'Did you mean --timeout?'],
  [{ argv: 'create --input' }, 2, 400, 'Unknown option --input', 'Did you mean one of --no-input, --output?'],
  [{ argv: 'create --xyzzy' }, 2, 400, 'Unknown option --xyzzy', 'See: plants create --help'],
  [{ argv: 'create --__proto__=1' }, 2, 400, 'Unknown option --__proto__', 'See: plants create --help'],
  [{ argv: 'create --tokn=SECRET' }, 2, 400, 'Unknown option --tokn', 'See: plants create --help'],
  [{ argv: 'create --tokn SECRET' }, 2, 400, 'Unknown option --tokn', 'See: plants create --help'],
  [{ argv: 'create --nmae=SECRET' }, 2, 400, 'Unknown option --nmae', 'Did you mean --name?'],
  [{ argv: 'create -tSECRET' }, 2, 400, 'Unknown option -t', 'See: plants create --help'],
  [{ argv: 'create -i 1' }, 2, 400, 'Unknown option -i', 'See: plants create --help'],
  [{ argv: 'get -x' }, 2, 400, 'Unknown option -x', 'See: plants get --help'],
  [{ argv: 'delete 1 --yse' }, 2, 400, 'Unknown option --yse', 'Did you mean --yes?'],
  [{ argv: 'get 1 --yes' }, 2, 400, 'Unknown option --yes', 'See: plants get --help'],
  [{ argv: '--limit 1 list' }, 2, 400, 'Unknown option --limit before the command', 'Write it after the command: plants list --limit'],
  [{ argv: '--file a create' }, 2, 400, 'Unknown option --file before the command', 'Write it after the command: plants create --file'],
  [{ argv: 'create --json' }, 2, 400, 'Unknown option --json', 'See: plants create --help'],
  [{ argv: '--format json list' }, 2, 400, 'Unknown option --format', 'See: plants list --help'],
  [{ argv: 'list -o json' }, 2, 400, 'Unknown option -o', 'See: plants list --help'],
  [{ argv: 'delete 1 -y' }, 2, 400, 'Unknown option -y', 'See: plants delete --help'],
  [{ argv: '-v' }, 2, 400, 'No command was given', 'See: plants --help'],
  [{ argv: '--version=1' }, 2, 400, '--version takes no value', 'See: plants --help'],
  [{ argv: 'delete 1 --yes=true' }, 2, 400, '--yes takes no value', 'See: plants delete --help'],
  [{ argv: 'creat' }, 2, 400, 'Unknown command creat', 'Did you mean create?'],
  [{ argv: 'lst' }, 2, 400, 'Unknown command lst', 'Did you mean list?'],
  [{ argv: 'xyzzy' }, 2, 400, 'Unknown command xyzzy', 'See: plants --help'],
  [{ argv: 'constructor' }, 2, 400, 'Unknown command constructor', 'See: plants --help'],
  [{ argv: 'help constructor' }, 2, 400, 'Unknown command constructor', 'See: plants --help'],
  [{ argv: [''] }, 2, 400, 'Unknown command ""', 'See: plants --help'],
  [{ argv: 'ls' }, 2, 400, 'Unknown command ls', 'Did you mean list?'],
  [{ argv: 'rm 5' }, 2, 400, 'Unknown command rm', 'See: plants --help'],
  [{ argv: 'version' }, 2, 400, 'Unknown command version', 'See: plants --help'],
  [{ argv: 'help xyzzy' }, 2, 400, 'Unknown command xyzzy', 'See: plants --help'],
  [{ argv: 'help creat' }, 2, 400, 'Unknown command creat', 'Did you mean create?'],
  [{ argv: 'help rm' }, 2, 400, 'Unknown command rm', 'See: plants --help'],
  [{ argv: 'xyzzy --help' }, 2, 400, 'Unknown command xyzzy', 'See: plants --help'],
  [{ argv: '--output json' }, 2, 400, 'No command was given', 'See: plants --help'],
  [{ argv: '--timeout list' }, 2, 400, 'No command was given', 'See: plants --help'],
  [{ argv: '--no-input --' }, 2, 400, 'No command was given', 'See: plants --help'],
  [{ argv: 'create Fern' }, 2, 400, 'create takes no arguments, but got 1', createHelp],
  [{ argv: 'create --id 1 --name Boston Fern' }, 2, 400, 'create takes no arguments, but got 1', createHelp],
  [{ argv: ['create', 'a\u001b[2J'] }, 2, 400, 'create takes no arguments, but got 1', createHelp],
  [{ argv: 'create -- --id 1' }, 2, 400, 'create takes no arguments, but got 2', 'See: plants create --help'],
  [{ argv: 'create -- --name --tag' }, 2, 400, 'create takes no arguments, but got 2', 'See: plants create --help'],
  [{ argv: 'get 1 2' }, 2, 400, 'get takes 1 argument, but got 2', 'See: plants get --help'],
  [{ argv: 'list 1' }, 2, 400, 'list takes no arguments, but got 1', 'See: plants list --help'],
  [{ argv: 'get' }, 2, 400, 'get needs an id', 'See: plants get --help'],
  [{ argv: 'delete --yes' }, 2, 400, 'delete needs an id', 'See: plants delete --help'],
]

const addressHint = 'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'
const stores: Row[] = [
  ['', '--store is empty'],
  ['sqlite:', '--store is empty'],
  [':memory:', '--store is no file: ":memory:"'],
  ['sqlite::memory:', '--store is no file: "sqlite::memory:"'],
  ['sqlite://x.db', '--store is no file: "sqlite://x.db"'],
  ['ftp://plants.example', '--store begins with ftp://, which this version cannot open'],
  ['s3://bucket/plants.db', '--store begins with s3://, which this version cannot open'],
  ['http:/x', '--store is not a valid URL'],
  ['file:user:SECRET@plants.example/db', '--store begins with file:, which this version cannot open'],
  ['https://', '--store is not a valid URL'],
  ['http://a b', '--store is not a valid URL'],
  ['file:plants.db', '--store begins with file:, which this version cannot open'],
].flatMap(([address = '', message = '']): Row[] => [
  [{ argv: ['list', '--store', address] }, 2, 400, message, addressHint],
  [{ argv: [...fern, `--store=${address}`], env: { PLANTS_STORE: 'local' } }, 2, 400, message, addressHint],
])
const otherStores: Row[] = [
  [
    { argv: 'list --store HTTPS://user:SECRET@plants.example/' },
    2,
    400,
    '--store holds a user name or a password; a store takes a token',
    'Put the token into PLANTS_TOKEN, or save it with: plants auth login',
  ],
  [{ argv: 'create --store ftp://plants.example' }, 2, 400, '--store begins with ftp://, which this version cannot open', addressHint],
  [
    { argv: 'list --store prod', env: { PLANTS_STORE: 'local' } },
    2,
    400,
    'There is no store called "prod", which --store names',
    'Save it with: plants stores add prod ADDRESS. For a file called so: ./prod',
  ],
  [
    { argv: 'list', env: { PLANTS_STORE: 'Local' } },
    2,
    400,
    'There is no store called "Local", which PLANTS_STORE names',
    'Did you mean local?',
  ],
  [{ argv: fern, env: { PLANTS_STORE: 'sqlite:' } }, 2, 400, 'PLANTS_STORE is empty', addressHint],
  [{ argv: 'get 1', env: { PLANTS_STORE: 'sqlite://x.db' } }, 2, 400, 'PLANTS_STORE is no file: "sqlite://x.db"', addressHint],
  [
    { argv: 'delete 1 --yes', env: { PLANTS_STORE: 'mysql://plants.example' } },
    2,
    400,
    'PLANTS_STORE begins with mysql://, which this version cannot open',
    addressHint,
  ],
]

const notJson: Row[] = [
  ['x', 'unexpected "x" at line 1, column 1'],
  ['{', 'the text ends at line 1, column 2'],
  ['[', 'the text ends at line 1, column 2'],
  ['[[1, [2', 'the text ends at line 1, column 8'],
  ['}', 'unexpected "}" at line 1, column 1'],
  ['{"id":1', 'the text ends at line 1, column 8'],
  ['{"id":1,', 'the text ends at line 1, column 9'],
  ['{"id"', 'the text ends at line 1, column 6'],
  ['{"id":', 'the text ends at line 1, column 7'],
  ['{"id":1]', 'unexpected "]" at line 1, column 8'],
  ['{"id":1,}', 'unexpected "}" at line 1, column 9'],
  ['{"id":1 "name":"Fern"}', 'unexpected "\\"" at line 1, column 9'],
  ['{"id":1,"name":"Fern"}}', 'unexpected "}" at line 1, column 23'],
  ['{"id" 1}', 'unexpected "1" at line 1, column 7'],
  ['{,}', 'unexpected "," at line 1, column 2'],
  ['{"a":1,"b"}', 'unexpected "}" at line 1, column 11'],
  ['[1,]', 'unexpected "]" at line 1, column 4'],
  ['{id:1}', 'unexpected "i" at line 1, column 2'],
  ["{'id':1}", `unexpected "'" at line 1, column 2`],
  ['{\u201cid\u201d:1}', 'unexpected "\u201c" at line 1, column 2'],
  ['{1:2}', 'unexpected "1" at line 1, column 2'],
  ['{"id":01}', 'unexpected "1" at line 1, column 8'],
  ['{"id":+1}', 'unexpected "+" at line 1, column 7'],
  ['{"id":-}', 'unexpected "-" at line 1, column 7'],
  ['{"id":.5}', 'unexpected "." at line 1, column 7'],
  ['{"id":5.}', 'unexpected "." at line 1, column 8'],
  ['{"id":1e}', 'unexpected "e" at line 1, column 8'],
  ['{"id":0x10}', 'unexpected "x" at line 1, column 8'],
  ['{"id":1_000}', 'unexpected "_" at line 1, column 8'],
  ['{"id":NaN}', 'unexpected "N" at line 1, column 7'],
  ['{"id":-Infinity}', 'unexpected "-" at line 1, column 7'],
  ['{"id":\u0661}', 'unexpected "\u0661" at line 1, column 7'],
  ['True', 'unexpected "T" at line 1, column 1'],
  ['nul', 'unexpected "n" at line 1, column 1'],
  ['// a plant\n{}', 'unexpected "/" at line 1, column 1'],
  ['{"id":1} // a plant', 'unexpected "/" at line 1, column 10'],
  ['id,name\n1,Fern\n', 'unexpected "i" at line 1, column 1'],
  ['<!doctype html>', 'unexpected "<" at line 1, column 1'],
  ['{"name":"a\nb"}', 'unexpected U+000A at line 1, column 11'],
  ['{"name":"a\tb"}', 'unexpected U+0009 at line 1, column 11'],
  ['{"name":"\u0000"}', 'unexpected U+0000 at line 1, column 10'],
  ['{"name":"abc', 'the text ends at line 1, column 13'],
  ['{"name":"\\x"}', 'an escape that JSON does not have at line 1, column 10'],
  ['{"name":"\\u12"}', 'an escape that JSON does not have at line 1, column 10'],
  ['{"name":"C:\\plants"}', 'an escape that JSON does not have at line 1, column 12'],
  ['{\\"id\\":1}', 'unexpected "\\\\" at line 1, column 2'],
  ['{\n  "id": 1,\n  "name": Fern\n}\n', 'unexpected "F" at line 3, column 11'],
  ['{\r\n"id":1,\r\n"name":Fern}', 'unexpected "F" at line 3, column 8'],
  ['{\n"id":1,\n', 'the text ends at line 3, column 1'],
  ['\u001b[31m', 'unexpected U+001B at line 1, column 1'],
  ['\u202e', 'unexpected U+202E at line 1, column 1'],
  ['\u200b{}', 'unexpected U+200B at line 1, column 1'],
  ['{"id":1,\u00a0"name":"Fern"}', 'unexpected U+00A0 at line 1, column 9'],
  ['{\u0000"\u0000', 'unexpected U+0000 at line 1, column 2'],
  ['\u{e0001}', 'unexpected U+E0001 at line 1, column 1'],
  ['{"id":1,"name":"Fern"} tag', 'unexpected "t" at line 1, column 24'],
  ['{"id":1,"name":"Fern"} nul', 'unexpected "n" at line 1, column 24'],
  ['{"id":1,"name":"Fern"} - a plant', 'unexpected "-" at line 1, column 24'],
  ['{"id":1,"name":"Fern"}"', 'unexpected "\\"" at line 1, column 23'],
  ['{"id":1,"name":"Fern"},{"id":2,"name":"Moss"}', 'unexpected "," at line 1, column 23'],
  ['{"a":\u{1f331}}', 'unexpected "\u{1f331}" at line 1, column 6'],
  ['['.repeat(100_000), 'the text ends at line 1, column 100001'],
  ['{"a":'.repeat(100_000), 'the text ends at line 1, column 500001'],
  [`${'['.repeat(100_000)}}`, 'unexpected "}" at line 1, column 100001'],
  [`${'\n'.repeat(1000)}x`, 'unexpected "x" at line 1001, column 1'],
].map(([stdin = '', what]): Row => [{ argv: 'create', stdin }, 2, 400, `Stdin is not JSON: ${what}`, example])

const severalValues: Row[] = [
  ['{"id":1,"name":"Fern"}{"id":2,"name":"Moss"}', 'line 1, column 23'],
  ['{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n', 'line 2, column 1'],
  ['{"id":1,"name":"Fern"}\r\n\r\n{"id":2', 'line 3, column 1'],
  ['{"id":1,"name":"Fern"} {', 'line 1, column 24'],
  ['{"id":1,"name":"Fern"} true story', 'line 1, column 24'],
  ['[1][2]', 'line 1, column 4'],
  ['1 2', 'line 1, column 3'],
  ['"a""b"', 'line 1, column 4'],
  ['null null', 'line 1, column 6'],
].map(
  ([stdin = '', where]): Row => [
    { argv: 'create', stdin },
    2,
    400,
    `Stdin holds more than one JSON value, the second at ${where}`,
    onePlant,
  ],
)

const deep = (inside: string) => '['.repeat(100_000) + inside + ']'.repeat(100_000)
const notPlants: Row[] = [
  ['5', 'it must be an object, but was a number'],
  ['1e400', 'it must be an object, but was a number'],
  ['"Fern"', 'it must be an object, but was "Fern"'],
  [JSON.stringify('x'.repeat(41)), `it must be an object, but was "${'x'.repeat(39)}…"`],
  ['true', 'it must be an object, but was true'],
  ['null', 'it must be an object, but was null'],
  ['{}', `id must be ${int64}, but is missing; name must be a string, but is missing`],
  ['{"id":1}', 'name must be a string, but is missing'],
  ['{"name":"Fern"}', `id must be ${int64}, but is missing`],
  ['{"id":1,"nmae":"x"}', 'name must be a string, but is missing', '"nmae"'],
  ['{"ID":1,"Name":"Fern"}', `id must be ${int64}, but is missing; name must be a string, but is missing`, '"ID", "Name"'],
  ['{"__proto__":{"id":1,"name":"Fern"}}', `id must be ${int64}, but is missing; name must be a string, but is missing`, '"__proto__"'],
  ['{"name":"Fern","a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', `id must be ${int64}, but is missing`, '"a", "b", "c", "d", "e" and 1 more'],
  [
    JSON.stringify({ id: 1, [`${'k'.repeat(38)}${seedling.repeat(3)}`]: 1 }),
    'name must be a string, but is missing',
    `"${'k'.repeat(38)}${seedling}…"`,
  ],
  ['{"id":"1","name":"Fern"}', `id must be ${int64}, but was "1"`],
  ['{"id":true,"name":"Fern"}', `id must be ${int64}, but was true`],
  ['{"id":null,"name":"Fern"}', `id must be ${int64}, but was null`],
  ['{"id":[1],"name":"Fern"}', `id must be ${int64}, but was an array`],
  ['{"id":{"id":1},"name":"Fern"}', `id must be ${int64}, but was an object`],
  ['{"id":1.5,"name":"Fern"}', `id must be ${int64}, but was 1.5`],
  ['{"id":1.0000000000000000001,"name":"Fern"}', `id must be ${int64}, but was 1.0000000000000000001`],
  ['{"id":9223372036854775808,"name":"Fern"}', `id must be ${int64}, but was 9223372036854775808`],
  ['{"id":-9223372036854775809,"name":"Fern"}', `id must be ${int64}, but was -9223372036854775809`],
  ['{"id":1e400,"name":"Fern"}', `id must be ${int64}, but was 1e400`],
  ['{"id":1e999999999,"name":"Fern"}', `id must be ${int64}, but was 1e999999999`],
  ['{"id":1e-999999999,"name":"Fern"}', `id must be ${int64}, but was 1e-999999999`],
  [`{"id":${'1'.repeat(1_000_000)},"name":"Fern"}`, `id must be ${int64}, but was ${'1'.repeat(39)}…`],
  ['{"id":"a\\u001b[2J\\n","name":"Fern"}', `id must be ${int64}, but was "a\\u001b[2J\\n"`],
  ['{"id":1,"name":5}', 'name must be a string, but was a number'],
  ['{"id":1,"name":null}', 'name must be a string, but was null'],
  ['{"id":1,"name":false}', 'name must be a string, but was false'],
  ['{"id":1,"name":["Fern"]}', 'name must be a string, but was an array'],
  ['{"id":1,"name":{}}', 'name must be a string, but was an object'],
  ['{"id":1,"name":"\\ud800"}', 'name must be well-formed Unicode, but holds half of a surrogate pair'],
  ['{"id":1,"name":"\\udf31\\ud83c"}', 'name must be well-formed Unicode, but holds half of a surrogate pair'],
  ['{"id":1,"name":"a\\u0000b"}', 'name must be text without U+0000, but holds it'],
  ['{"id":1,"name":"Fern","tag":null}', 'tag must be a string, but was null'],
  ['{"id":1,"name":"Fern","tag":5}', 'tag must be a string, but was a number'],
  ['{"id":1,"name":"Fern","tag":true}', 'tag must be a string, but was true'],
  ['{"id":1,"name":"Fern","tag":["shade"]}', 'tag must be a string, but was an array'],
  ['{"id":1,"name":"Fern","tag":{}}', 'tag must be a string, but was an object'],
  ['{"id":1,"name":"Fern","tag":"\\ud83c"}', 'tag must be well-formed Unicode, but holds half of a surrogate pair'],
  ['{"id":1,"name":"Fern","tag":"\\u0000"}', 'tag must be text without U+0000, but holds it'],
  [
    '{"tag":2,"name":"\\u0000","id":"x"}',
    `id must be ${int64}, but was "x"; name must be text without U+0000, but holds it; tag must be a string, but was a number`,
  ],
  ['{"id":1,"id":"2","name":"Fern"}', `id must be ${int64}, but was "2"`],
  ['{"id":1,"id":1.5,"name":"Fern"}', `id must be ${int64}, but was 1.5`],
  ['{"id":1,"id":[2],"name":"Fern"}', `id must be ${int64}, but was an array`],
  ['{"id":1,"\\u0069d":1.5,"name":"Fern"}', `id must be ${int64}, but was 1.5`],
  ['{"i\\u0064":"2","name":"Fern"}', `id must be ${int64}, but was "2"`],
  ['{"id":1,"name":"Fern","name":null}', 'name must be a string, but was null'],
  ['{"id":1,"name":"Fern","tag":"shade","t\\u0061g":5}', 'tag must be a string, but was a number'],
  [`{"id":${deep('')},"name":"Fern"}`, `id must be ${int64}, but was an array`],
  [`{"id":1,"name":${deep('{"id":2}')}}`, 'name must be a string, but was an array'],
].map(
  ([stdin = '', what, others]): Row => [
    { argv: 'create', stdin },
    2,
    422,
    `Not a NewPlant: ${what}`,
    others === undefined ? example : `${example}. Unknown fields: ${others}`,
  ],
)

const arrays: Row[] = ['[]', '[{"id":1,"name":"Fern"}]', '["id",1]', deep('')].map(
  (stdin): Row => [{ argv: 'create', stdin }, 2, 422, 'Not a NewPlant: it must be an object, but was an array', onePlant],
)

const convertFrom = (encoding: string) => `Convert it first, from what it is in, for example: iconv -f ${encoding} -t UTF-8`
const bytes = (...values: number[]) => Uint8Array.from(values)
const notUtf8: Row[] = [
  { stdin: bytes(0xff), encoding: 'LATIN1' }, // never in UTF-8
  { stdin: bytes(0x80), encoding: 'LATIN1' }, // a continuation that continues nothing
  { stdin: bytes(0x22, 0xc0, 0xaf, 0x22), encoding: 'LATIN1' }, // an overlong "/"
  { stdin: bytes(0x22, 0xe2, 0x82), encoding: 'LATIN1' }, // a truncated "€"
  { stdin: bytes(0x22, 0xed, 0xa0, 0x80, 0x22), encoding: 'LATIN1' }, // a surrogate
  { stdin: bytes(0x22, 0xf4, 0x90, 0x80, 0x80, 0x22), encoding: 'LATIN1' }, // above U+10FFFF
  { stdin: bytes(0xef, 0xbb), encoding: 'LATIN1' }, // a truncated byte order mark
  { stdin: bytes(0x7b, 0xff, 0xfe, 0x7d), encoding: 'LATIN1' }, // a byte order mark that is not in front
  { stdin: Buffer.from('{"id":1,"name":"Efeu, gr\u00fcn"}', 'latin1'), encoding: 'LATIN1' },
  { stdin: bytes(0xff, 0xfe, 0x7b, 0, 0x7d, 0), encoding: 'UTF-16' }, // little-endian
  { stdin: bytes(0xfe, 0xff, 0, 0x7b, 0, 0x7d), encoding: 'UTF-16' }, // big-endian
  { stdin: Buffer.from('\ufeff{"id":1,"name":"Fern"}', 'utf16le'), encoding: 'UTF-16' },
].map(({ stdin, encoding }): Row => [{ argv: 'create', stdin }, 2, 400, 'Stdin is not UTF-8', convertFrom(encoding)])

const limit = 1_048_576
const giveFlags = 'Give the plant with flags: plants create --id 1 --name Fern'
const stdin: Row[] = [
  [{ argv: 'create' }, 2, 400, 'Nothing on stdin', giveFlags],
  [{ argv: 'create --file - --id 1' }, 2, 400, 'Nothing on stdin', giveFlags],
  [{ argv: 'create', stdin: '' }, 2, 400, 'Nothing on stdin', giveFlags],
  [{ argv: 'create', stdin: ' \r\n\t' }, 2, 400, 'Nothing on stdin', giveFlags],
  [{ argv: 'create', stdin: '\ufeff' }, 2, 400, 'Nothing on stdin', giveFlags],
  [{ argv: 'create', stdin: ' '.repeat(limit) }, 2, 400, 'Nothing on stdin', giveFlags],
  [
    { argv: 'create', stdin: `{"id":1,"name":"Fern"}${' '.repeat(limit - 21)}` },
    2,
    413,
    'Stdin is larger than 1 MiB (1048576 bytes)',
    onePlant,
  ],
  [{ argv: 'create', stdin: new Uint8Array(3 * limit).fill(0xff) }, 2, 413, 'Stdin is larger than 1 MiB (1048576 bytes)', onePlant],
]

const fileHint = 'Give a file that holds one plant as JSON'
const files: Row[] = [
  [{ argv: 'create --file no.json' }, 2, 400, 'Could not read no.json: there is no such file', fileHint],
  [{ argv: 'create --file .' }, 2, 400, 'Could not read .: it is a folder', fileHint],
  [{ argv: 'create --file a/fern.json', files: { a: '{}' } }, 2, 400, 'Could not read a/fern.json: there is no such file', fileHint],
  [{ argv: ['create', '--file', ''] }, 2, 400, '--file needs a path', 'Or read stdin with: --file -'],
  [{ argv: 'create --file= --id 1 --name Fern' }, 2, 400, '--file needs a path', 'Or read stdin with: --file -'],
  [{ argv: ['create', '--file', 'x'.repeat(256)] }, 2, 400, `Could not read ${'x'.repeat(256)}: the path is too long`, fileHint],
  [{ argv: 'create --file a', files: { a: '' } }, 2, 400, 'a is empty', example],
  [{ argv: 'create --file a', files: { a: '\ufeff\r\n' } }, 2, 400, 'a is empty', example],
  [{ argv: 'create --file a', files: { a: ' '.repeat(limit + 1) } }, 2, 413, 'a is larger than 1 MiB (1048576 bytes)', onePlant],
  [{ argv: 'create --file a', files: { a: '{"id":1,' } }, 2, 400, 'a is not JSON: the text ends at line 1, column 9', example],
  [
    { argv: 'create --file a', files: { a: '{}\n{}' } },
    2,
    400,
    'a holds more than one JSON value, the second at line 2, column 1',
    onePlant,
  ],
  [
    { argv: 'create --file a', files: { a: '{"id":1,"name":"Fern"}\ntag' } },
    2,
    400,
    'a is not JSON: unexpected "t" at line 2, column 1',
    example,
  ],
  [{ argv: 'create --file a', files: { a: bytes(0x22, 0xff, 0x22) } }, 2, 400, 'a is not UTF-8', convertFrom('LATIN1')],
  [
    { argv: 'create --file a', files: { a: Buffer.from('\ufeff{"id":1,"name":"Fern"}', 'utf16le') } },
    2,
    400,
    'a is not UTF-8',
    convertFrom('UTF-16'),
  ],
  [{ argv: 'create --file a', files: { a: '[]' } }, 2, 422, 'Not a NewPlant: it must be an object, but was an array', onePlant],
  [{ argv: 'create --file a --id 1', files: { a: '[]' } }, 2, 422, 'Not a NewPlant: it must be an object, but was an array', onePlant],
  [{ argv: 'create --file a --id 1', files: { a: 'null' } }, 2, 422, 'Not a NewPlant: it must be an object, but was null', example],
  [
    { argv: 'create --file a --id 1', files: { a: '{"id":"x","name":5}' } },
    2,
    422,
    'Not a NewPlant: name must be a string, but was a number',
    example,
  ],
  [
    { argv: 'create --file a --id 1', files: { a: '{"id":"x","nmae":5}' } },
    2,
    422,
    'Not a NewPlant: name must be a string, but is missing',
    `${example}. Unknown fields: "nmae"`,
  ],
]

const rows = [wrongIds, flags, usage, stores, otherStores, notJson, severalValues, notPlants, arrays, notUtf8, stdin, files].flat()

test.each(rows.map((row) => [titleOf(row[0]), ...row] as const))('refuses %s', async (_, given, code, error, message, hint) => {
  const { err, ...result } = await refused(given, ['--output', 'json'])
  expect({ ...result, error: JSON.parse(err) }).toEqual({
    code,
    out: '',
    error: hint === undefined ? { error, message } : { error, message, hint },
    stored: false,
  })
})

/** The rows that are a document on stdin, and nothing else. */
const documents = rows.flatMap(([given, ...expected]): [string, string | Uint8Array, ...typeof expected][] =>
  given.argv === 'create' && given.stdin !== undefined ? [[titleOf(given), given.stdin, ...expected]] : [],
)

describe('the three doors', () => {
  const service = serveForAll()
  const atHome = new Map([
    ['Nothing on stdin', /^The body is (empty|not JSON: (the text ends|unexpected U\+FEFF) at line \d+, column \d+)$/],
    ['Stdin is larger than 1 MiB (1048576 bytes)', /^The body is larger than 1048576 bytes$/],
  ])

  test.each(documents)(
    '%s: a remote store is told nothing, and the words are those of the embedded one',
    async (_, stdin, code, error, message, hint) => {
      const nowhere = ['--store', 'http://127.0.0.1:1', '--timeout', '0', '--output', 'json']
      const { err, ...result } = await refused({ argv: [...nowhere, 'create'], stdin, env: { PLANTS_TOKEN: testToken } })
      expect({ ...result, error: JSON.parse(err) }).toEqual({
        code,
        out: '',
        error: hint === undefined ? { error, message } : { error, message, hint },
        stored: false,
      })
    },
  )

  test.each(documents)('%s: HTTP says the same', async (_, stdin, __, error, message) => {
    const { status, body } = await exchange(service(), { body: stdin })
    const words = atHome.get(message) ?? message.replace(/^Stdin/, 'The body')
    const expected = typeof words === 'string' ? words : expect.stringMatching(words)
    expect({ status, body: JSON.parse(body) }).toEqual({ status: 400, body: { error, message: expected } })
  })

  test('refuse an id and a key that are taken with the same words, and the same code', async () => {
    const { address, token } = service()
    const folder = temporaryFolder()
    const doors = [{ PLANTS_STORE: address, PLANTS_TOKEN: token }, { PLANTS_DATA_DIR: join(folder, 'data') }]
    const create = (env: Record<string, string>, ...args: string[]) => runPlants(['create', ...args, '--output', 'json'], { env })
    for (const env of doors) {
      expect((await create(env, '--id', '1', '--name', 'Fern', '--idempotency-key', 'k')).code).toBe(0)
      const id = await create(env, '--id', '1', '--name', 'Moss')
      expect([id.code, JSON.parse(id.err)]).toEqual([
        1,
        expect.objectContaining({ error: 409, message: 'A plant with id 1 already exists' }),
      ])
      const key = await create(env, '--id', '2', '--name', 'Moss', '--idempotency-key', 'k')
      const message = 'This idempotency key was used for a different plant'
      expect([key.code, JSON.parse(key.err)]).toEqual([1, expect.objectContaining({ error: 409, message })])
    }
    const list = await runPlants(['list'], { env: { PLANTS_DATA_DIR: join(service().folder, 'data') } })
    expect(list).toEqual({ code: 0, out: '{"id":1,"name":"Fern"}\n', err: '' })
  })
})

test.each([
  ['--output json --output text create --nmae Fern', 'Unknown option --nmae', 'Did you mean --name?'],
  [
    'list --output=json --limit 0 --output=text',
    '--limit must be a whole number from 1 to 9007199254740991, but was "0"',
    'For example: --limit 10',
  ],
  ['create --output xml', '--output must be text or json, but was "xml"', 'For example: --output json'],
  ['list --output JSON', '--output must be text or json, but was "JSON"', 'For example: --output json'],
  ['list --output=', '--output must be text or json, but was ""', 'For example: --output json'],
  [
    `list --output=${'x'.repeat(38)}${seedling.repeat(3)}`,
    `--output must be text or json, but was "${'x'.repeat(38)}${seedling}…"`,
    'For example: --output json',
  ],
  ['list --output json --output xml', '--output must be text or json, but was "xml"', 'For example: --output json'],
  ['create -- --output json', 'create takes no arguments, but got 2', 'See: plants create --help'],
  ['create -- --output=json', 'create takes no arguments, but got 1', 'See: plants create --help'],
  ['create --tokn=SECRET', 'Unknown option --tokn', 'See: plants create --help'],
  ['\u001b[2J', 'Unknown command \\u{1b}[2J', 'See: plants --help'],
])('says in words what is wrong with %j', async (argv, message, hint) => {
  expect(await refused({ argv })).toEqual({ code: 2, out: '', err: `plants: ${message}\n  ${hint}\n`, stored: false })
})

/** What a command line gives in a world where nothing is stored yet, and whether something is afterwards. */
async function refused(given: Given, flags: string[] = []): Promise<Result & { stored: boolean }> {
  const folder = temporaryFolder()
  const data = join(folder, 'data')
  const cwd = join(folder, 'work')
  mkdirSync(cwd)
  for (const [name, content] of Object.entries(given.files ?? {})) writeFileSync(join(cwd, name), content)
  const argv = typeof given.argv === 'string' ? given.argv.split(' ') : given.argv
  const result = await runPlants([...flags, ...argv], { ...given, cwd, env: { PLANTS_DATA_DIR: data, ...given.env } })
  return { ...result, stored: existsSync(data) || readdirSync(cwd).length > Object.keys(given.files ?? {}).length }
}

function titleOf({ argv, stdin, files, env }: Given): string {
  const content = stdin ?? files?.['a']
  const shown = typeof content === 'string' ? JSON.stringify(content.slice(0, 60)) : Buffer.from(content ?? []).toString('hex', 0, 30)
  const line = [Object.values(env ?? {}), argv].flat().join(' ').slice(0, 80)
  return JSON.stringify(line).slice(1, -1) + (content === undefined ? '' : ` < ${shown}`)
}
