import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { digits, range, seedling } from '../../helpers/bad-plants.js'
import { program, treeOf } from '../../helpers/helps.js'
import { expectRefusal, type Refusal, refused, titleOf } from '../../helpers/refusals.js'
import { refusal } from '../../helpers/world.js'

const quotes = 'Its fields are options, and a text with spaces is in quotes: plants create --id ID --name "TEXT"'

const fern = ['create', '--id', '1', '--name', 'Fern']
const orFile = ', or read JSON from a file with --file PATH'
const orStdin = ', or read JSON from stdin with --file -'

/** Each is given as the id in a flag and as an argument, and refused for the reason that it stands under. */
const wrongIds = Object.entries({
  [range]: ['9223372036854775808', '-9223372036854775809', '1e400', '1e19', '1e999999999', '-1e999999999'],
  'an integer': ['1.5', '-5.5', '1.0000000000000000001', '1e-1', '1e-999999999', ''],
  'an integer without spaces': [' 1', '1 ', '1\n', '1 000'],
  'an integer without leading zeros': ['007', '-00'],
  'an integer, in digits only': [
    ...[
      '0x10',
      '0b1',
      '+1',
      '1_000',
      '1,000',
      '.5',
      '-.5',
      '5.',
      '1e',
      '1e+',
      '1n',
      '"1"',
      'NaN',
      'Infinity',
      'null',
      'true',
    ],
    '\u0661', // an Arabic digit
    '\uff11', // a fullwidth digit
    '\u22121', // a minus sign that is no hyphen
    'a\u001b[2J',
  ],
}).flatMap(([rule, texts]) =>
  texts.flatMap((text): Refusal[] => {
    const message = `id must be ${rule}, but was ${JSON.stringify(text)}`
    return [
      [{ argv: ['create', '--id', text, '--name', 'Fern'] }, 2, 422, message, `Correct the flags${orFile}`],
      [{ argv: ['get', text] }, 2, 400, message, 'For example: 1'],
    ]
  }),
)

const flags: Refusal[] = [
  [{ argv: 'create --id 1' }, 2, 422, 'name must be a string, but is missing', `Add --name${orFile}`],
  [{ argv: 'create --name Fern' }, 2, 422, 'id must be an integer, but is missing', `Add --id${orFile}`],
  [
    { argv: 'create --tag shade' },
    2,
    422,
    'id must be an integer, but is missing; name must be a string, but is missing',
    `Add --id and --name${orFile}`,
  ],
  [
    { argv: 'create --id x' },
    2,
    422,
    `id must be ${digits}, but was "x"; name must be a string, but is missing`,
    `Add --name${orFile}`,
  ],
  [
    { argv: 'create --id 5', stdin: '{"id":1,"name":"Fern"}' },
    2,
    422,
    'name must be a string, but is missing',
    `Stdin was not read, because flags were given. Add --name${orStdin}`,
  ],
  [
    { argv: 'create --id x --name Fern', stdin: '{"id":1,"name":"Fern"}' },
    2,
    422,
    `id must be ${digits}, but was "x"`,
    `Stdin was not read, because flags were given. Correct the flags${orStdin}`,
  ],
  [
    { argv: ['create', '--id', 'x'.repeat(41), '--name', 'Fern'] },
    2,
    422,
    `id must be ${digits}, but was "${'x'.repeat(39)}…"`,
    `Correct the flags${orFile}`,
  ],
  [
    { argv: ['create', '--id', `${'x'.repeat(38)}${seedling.repeat(3)}`, '--name', 'Fern'] },
    2,
    422,
    `id must be ${digits}, but was "${'x'.repeat(38)}${seedling}…"`,
    `Correct the flags${orFile}`,
  ],
  [
    { argv: ['create', '--id', seedling.repeat(41), '--name', 'Fern'] },
    2,
    422,
    `id must be ${digits}, but was "${seedling.repeat(39)}…"`,
    `Correct the flags${orFile}`,
  ],
  [
    { argv: ['create', '--id', seedling.repeat(21), '--name', 'Fern'] },
    2,
    422,
    `id must be ${digits}, but was "${seedling.repeat(21)}"`,
    `Correct the flags${orFile}`,
  ],
  [
    { argv: ['create', '--id', '1', '--name', '\ud800'] },
    2,
    422,
    'name must be well-formed Unicode, but contains a lone surrogate',
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
    'create takes no arguments, but got 1',
    'The value of --id is --name. See: plants create --help',
  ],
  [
    { argv: 'create --name --tag x' },
    2,
    400,
    'create takes no arguments, but got 1',
    'The value of --name is --tag. See: plants create --help',
  ],
  [
    { argv: 'create --id 1 --name Fern --tag --dry-run' },
    2,
    400,
    '--tag needs a value, but --dry-run follows',
    'For this value: --tag=--dry-run',
  ],
  [
    { argv: 'create --id -x --name Fern' },
    2,
    422,
    'id must be an integer, in digits only, but was "-x"',
    `Correct the flags${orFile}`,
  ],
  [{ argv: 'create --file -- x' }, 2, 400, 'create takes no arguments, but got 1', quotes],
  ...['x', '', '-1', '1e3', '1 s', '5w', '1.2345', '.5', '+1', '\u221e', '9999999999'].map(
    (text): Refusal => [
      { argv: ['list', '--timeout', text] },
      2,
      400,
      `--timeout must be a duration such as 30s, 500ms or 2m, but was "${text}"`,
      'For example: --timeout 30s',
    ],
  ),
  ...['x', '', '0', '-1', '1.5', '1e3', '01', '9007199254740992', '99999999999999999'].map(
    (text): Refusal => [
      { argv: ['list', '--limit', text] },
      2,
      400,
      `--limit must be a whole number from 1 to 9007199254740991, but was "${text}"`,
      'For example: --limit 10',
    ],
  ),
  ...[
    ['x', digits],
    ['', 'an integer'],
    ['1.5', 'an integer'],
    ['+1', digits],
    ['9223372036854775808', range],
  ].map(
    ([text = '', rule]): Refusal => [
      { argv: ['list', '--after', text] },
      2,
      400,
      `--after must be ${rule}, but was "${text}"`,
      'For example: --after 1',
    ],
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
    ([key = '', failure]): Refusal => [
      { argv: ['create', '--id', '1', '--name', 'Fern', '--idempotency-key', key] },
      2,
      400,
      `--idempotency-key must be 1 to 255 visible ASCII characters, but ${failure}`,
      'For example: --idempotency-key "$(uuidgen)"',
    ],
  ),
  [{ argv: 'delete 1' }, 2, 400, 'Deleting requires confirmation', 'To delete without confirmation, add --yes'],
  [{ argv: 'get sword-fern' }, 2, 400, `id must be ${digits}, but was "sword-fern"`, 'For example: 1'],
  [{ argv: 'delete 1,-2,3 --yes' }, 2, 400, `id must be ${digits}, but was "1,-2,3"`, 'For example: 1'],
  [{ argv: 'delete 1,x --yes' }, 2, 400, `id must be ${digits}, but was "1,x"`, 'For example: 1'],
  [{ argv: 'delete x --yes' }, 2, 400, `id must be ${digits}, but was "x"`, 'For example: 1'],
]

const afterIt = (command: string) => `The options of a command follow it. See: plants ${command} --help`

const usage: Refusal[] = [
  [{ argv: 'create --nmae Fern' }, 2, 400, 'Unknown option --nmae', 'Did you mean --name?'],
  [{ argv: 'list --timeuot 5s' }, 2, 400, 'Unknown option --timeuot', 'Did you mean --timeout?'],
  [{ argv: 'create --input' }, 2, 400, 'Unknown option --input', 'See: plants create --help'],
  [{ argv: 'create --xyzzy' }, 2, 400, 'Unknown option --xyzzy', 'See: plants create --help'],
  [{ argv: 'create --__proto__=1' }, 2, 400, 'Unknown option --__proto__', 'See: plants create --help'],
  [{ argv: 'create --tokn=SECRET' }, 2, 400, 'Unknown option --tokn', 'See: plants create --help'],
  [{ argv: 'create --tokn SECRET' }, 2, 400, 'Unknown option --tokn', 'See: plants create --help'],
  [{ argv: 'create --nmae=SECRET' }, 2, 400, 'Unknown option --nmae', 'Did you mean --name?'],
  [{ argv: 'create -xSECRET' }, 2, 400, 'Unknown option -x', 'See: plants create --help'],
  [
    { argv: 'create -n -t x' },
    2,
    400,
    'create takes no arguments, but got 1',
    'The value of --name is -t. See: plants create --help',
  ],
  [{ argv: 'get -x' }, 2, 400, 'Unknown option -x', 'See: plants get --help'],
  [{ argv: 'delete 1 --yse' }, 2, 400, 'Unknown option --yse', 'Did you mean --yes?'],
  [{ argv: 'get 1 --yes' }, 2, 400, 'Unknown option --yes', 'See: plants get --help'],
  [{ argv: '--limit 1 list' }, 2, 400, 'Unknown option --limit before the command', afterIt('list')],
  [{ argv: '--file a create' }, 2, 400, 'Unknown option --file before the command', afterIt('create')],
  [{ argv: 'create --json' }, 2, 400, 'Unknown option --json', 'Did you mean --output json?'],
  [{ argv: '--sort name list' }, 2, 400, 'Unknown option --sort before the command', afterIt('list')],
  [{ argv: 'list -s' }, 2, 400, '-s needs a value', 'See: plants list --help'],
  [{ argv: '-vq' }, 2, 400, 'No command was given', 'See: plants --help'],
  [{ argv: '--version=1' }, 2, 400, '--version takes no value', 'See: plants --help'],
  [{ argv: 'delete 1 --yes=true' }, 2, 400, '--yes takes no value', 'See: plants delete --help'],
  [{ argv: 'creat' }, 2, 400, 'Unknown command creat', 'Did you mean create?'],
  [{ argv: 'lst' }, 2, 400, 'Unknown command lst', 'Did you mean list?'],
  [{ argv: 'xyzzy' }, 2, 400, 'Unknown command xyzzy', 'See: plants --help'],
  [{ argv: 'constructor' }, 2, 400, 'Unknown command constructor', 'See: plants --help'],
  [{ argv: 'help constructor' }, 2, 400, 'Unknown command constructor', 'See: plants --help'],
  [{ argv: [''] }, 2, 400, 'Unknown command ""', 'See: plants --help'],
  [{ argv: 'ls 1' }, 2, 400, 'list takes no arguments, but got 1', 'For plants by their ids: plants get ID'],
  [
    { argv: 'rm' },
    2,
    400,
    'delete takes either ids or filters',
    'Name plants by their ids, or by --tag, --no-tag or --search: plants help delete',
  ],
  [{ argv: 'help xyzzy' }, 2, 400, 'Unknown command xyzzy', 'See: plants --help'],
  [{ argv: 'help creat' }, 2, 400, 'Unknown command creat', 'Did you mean create?'],
  [{ argv: 'help list xyzzy' }, 2, 400, 'Unknown command xyzzy', 'See: plants list --help'],
  [{ argv: '--timeout 5s' }, 2, 400, 'No command was given', 'See: plants --help'],
  [{ argv: '--timeout list' }, 2, 400, 'No command was given', 'See: plants --help'],
  [{ argv: '--no-input --' }, 2, 400, 'No command was given', 'See: plants --help'],
  [{ argv: 'create Fern' }, 2, 400, 'create takes no arguments, but got 1', quotes],
  [{ argv: 'create Boston --tag Fern Fern --id 1' }, 2, 400, 'create takes no arguments, but got 2', quotes],
  [{ argv: 'create --id 1 --name Boston Fern' }, 2, 400, 'create takes no arguments, but got 1', quotes],
  [{ argv: ['create', 'a\u001b[2J'] }, 2, 400, 'create takes no arguments, but got 1', quotes],
  [{ argv: 'create -- --id 1' }, 2, 400, 'create takes no arguments, but got 2', quotes],
  [{ argv: 'create -- --name --tag' }, 2, 400, 'create takes no arguments, but got 2', quotes],
  [
    { argv: 'list Fern' },
    2,
    400,
    'list takes no arguments, but got 1',
    'Usage: plants list [options]. See: plants list --help',
  ],
  [
    { argv: 'update 1 Moss' },
    2,
    400,
    'update takes ids, but got "Moss"',
    'What changes is an option, and a text with spaces is in quotes: plants update ID --name "TEXT"',
  ],
  [
    { argv: 'openapi v1' },
    2,
    400,
    'openapi takes no arguments, but got 1',
    'Usage: plants openapi [options]. See: plants openapi --help',
  ],
  [{ argv: 'get' }, 2, 400, 'get needs an id', 'Usage: plants get <id...>. See: plants get --help'],
  [
    { argv: 'delete --yes' },
    2,
    400,
    'delete takes either ids or filters',
    'Name plants by their ids, or by --tag, --no-tag or --search: plants help delete',
  ],
  [
    { argv: 'delete 1 --tag x' },
    2,
    400,
    'delete takes either ids or filters',
    'Name plants by their ids, or by --tag, --no-tag or --search: plants help delete',
  ],
]

const addressHint =
  'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'
const stores: Refusal[] = [
  ['', '--store is empty'],
  ['sqlite:', '--store is empty'],
  [':memory:', '--store does not name a store'],
  ['sqlite::memory:', '--store does not name a store'],
  ['sqlite://x.db', '--store does not name a store'],
  ['ftp://plants.example', '--store does not name a store'],
  ['s3://bucket/plants.db', '--store does not name a store'],
  ['http:/x', '--store is not a valid URL'],
  ['file:user:SECRET@plants.example/db', '--store does not name a store'],
  ['https://', '--store is not a valid URL'],
  ['http://a b', '--store is not a valid URL'],
  ['file:plants.db', '--store does not name a store'],
].flatMap(([address = '', message = '']): Refusal[] => [
  [{ argv: ['list', '--store', address] }, 2, 400, message, addressHint],
  [{ argv: [...fern, `--store=${address}`], env: { PLANTS_STORE: 'local' } }, 2, 400, message, addressHint],
])
const otherStores: Refusal[] = [
  [
    { argv: 'list --store HTTPS://user:SECRET@plants.example/' },
    2,
    400,
    '--store contains a user name or a password, but a service takes a token',
    'Put the token into PLANTS_TOKEN, or save it with: plants auth login',
  ],
  [{ argv: 'create --store ftp://plants.example' }, 2, 400, '--store does not name a store', addressHint],
  [
    { argv: 'list --store prod', env: { PLANTS_STORE: 'local' } },
    2,
    400,
    'There is no store named "prod" (from --store)',
    'No store is saved. For a file with that name: ./prod',
  ],
  [
    { argv: 'list', env: { PLANTS_STORE: 'Local' } },
    2,
    400,
    'There is no store named "Local" (from PLANTS_STORE)',
    'Did you mean local?',
  ],
  [{ argv: fern, env: { PLANTS_STORE: 'sqlite:' } }, 2, 400, 'PLANTS_STORE is empty', addressHint],
  [
    { argv: 'get 1', env: { PLANTS_STORE: 'sqlite://x.db' } },
    2,
    400,
    'PLANTS_STORE does not name a store',
    addressHint,
  ],
  [
    { argv: 'delete 1 --yes', env: { PLANTS_STORE: 'mysql://plants.example' } },
    2,
    400,
    'PLANTS_STORE does not name a store',
    addressHint,
  ],
]

const ofArguments = [wrongIds, flags, usage, stores, otherStores].flat()

test.each(ofArguments.map((row) => [titleOf(row[0]), row] as const))('refuses %s', async (_, row) => {
  await expectRefusal(row)
})

test('refuses each option with a value that is given twice, and no switch', async () => {
  const leaves = treeOf(program.root).filter((command) => command.commands.length === 0 && command.name() !== 'help')
  const wrong = leaves.flatMap((command) =>
    command.options.map(async ({ long: flag = '', required }) => {
      const names = namesOf(command)
      const values = required
        ? ['x', '1', '1d', 'json', 'skip', 'info', 'continue', 'id', 'name', 'id=x', 'utf-8', ';', '/x', 'read']
        : ['']
      const tried = values.map(async (value) => {
        const given = required ? [flag, value] : [flag]
        return (await refused({ argv: [...names, ...given, ...given, '--nope'] })).err
      })
      const first = `plants: ${required ? `${flag} was given twice` : 'Unknown option --nope'}\n`
      return (await Promise.all(tried)).some((err) => err.startsWith(first)) ? [] : [`${names.join(' ')} ${flag}`]
    }),
  )
  expect((await Promise.all(wrong)).flat()).toEqual([])
})

function namesOf(command: Command): string[] {
  return command.parent ? [...namesOf(command.parent), command.name()] : []
}

test.each([
  ['--output text create --nmae Fern', 'Unknown option --nmae', 'Did you mean --name?'],
  [
    'list --limit 0 --output=text',
    '--limit must be a whole number from 1 to 9007199254740991, but was "0"',
    'For example: --limit 10',
  ],
  [
    'create --output xml',
    '--output must be one of text, json, ndjson, csv, tsv, but was "xml"',
    'See: plants help formats',
  ],
  ['doctor -o csv', '--output must be one of text, json, ndjson, but was "csv"', 'See: plants help formats'],
  ['count -o tsv', '--output must be one of text, json, ndjson, but was "tsv"', 'See: plants help formats'],
  ['export -o text', '--output must be one of ndjson, json, csv, tsv, but was "text"', 'See: plants help formats'],
  ['list -o xml', '--output must be one of text, json, ndjson, csv, tsv, but was "xml"', 'See: plants help formats'],
  [
    'export -o plants.csv',
    '--output must be one of ndjson, json, csv, tsv, but was "plants.csv"',
    'See: plants help export',
  ],
  [
    'list --output JSON',
    '--output must be one of text, json, ndjson, csv, tsv, but was "JSON"',
    'See: plants help formats',
  ],
  ['list --output=', '--output must be one of text, json, ndjson, csv, tsv, but was ""', 'See: plants help formats'],
  [
    `list --output=${'x'.repeat(38)}${seedling.repeat(3)}`,
    `--output must be one of text, json, ndjson, csv, tsv, but was "${'x'.repeat(38)}${seedling}…"`,
    'See: plants help formats',
  ],
  ['create --id 1 --name Fern --tag a -tb', '--tag was given twice', 'Leave out one of them'],
  ['--store a.db list --nope --store=a.db', '--store was given twice', 'Leave out one of them'],
  ['create -- --output json', 'create takes no arguments, but got 2', quotes],
  ['create -- --output=json', 'create takes no arguments, but got 1', quotes],
  ['create --tokn=SECRET', 'Unknown option --tokn', 'See: plants create --help'],
  ['\u001b[2J', 'Unknown command \\u{1b}[2J', 'See: plants --help'],
])('says in words what is wrong with %j', async (argv, message, hint) => {
  expect(await refused({ argv })).toEqual({ ...refusal(message, hint), stored: false })
})
