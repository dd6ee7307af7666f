import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { isWindows } from '../../helpers/sandbox/sandbox.js'

// Mistakes that people make when they name an input, or save it with another program.

const unquote = `sed -E 's/^"//; s/"[[:space:]]*$//; s/""/"/g'`

type Mistake = [args: string[], message: string, hint: string]

const separatePairsHint = 'Separate the fields by commas: --map id=A,name=B'

test.each<Mistake>([
  [['', '--dry-run'], 'The name of a file to import is empty', 'Give a value, or remove it'],
  [
    ['https://a.example/list.csv'],
    'import reads files, not URLs',
    'Give the path of a file. If it is on the web, download it first',
  ],
  [
    ['s3://garden/list.csv'],
    'import reads files, not URLs',
    'Give the path of a file. If it is on the web, download it first',
  ],
  [['list.csv', '--columns', ''], '--columns is empty', 'Give a value, or leave the option out'],
  [
    ['list.csv', '--id', 'next'],
    'Unknown option --id',
    'For plants without ids: --by-name or --id-from N. To choose the column of the ids: --map id=COLUMN',
  ],
  ...['id;tag;name', 'id tag name'].map(
    (names): Mistake => [
      ['list.csv', '--columns', names],
      'The first row of list.csv has 3 cells, but names are given for only 1',
      'Separate the names by commas, such as --columns id,name,tag',
    ],
  ),
  [
    ['list.csv', '--id-from', 'auto'],
    '--id-from must be an integer from -9223372036854775808 to 9223372036854775807, but was "auto"',
    'For example: --id-from 1',
  ],
  [
    ['list.csv', '--name', 'Kind'],
    'Unknown option --name',
    'To choose the column of the names: --map name=COLUMN',
  ],
  [
    ['list.csv', '--tag', 'wet'],
    'Unknown option --tag',
    'To choose the column of the tags: --map tag=COLUMN',
  ],
  [
    ['list.csv', '--yes'],
    'Unknown option --yes',
    'Leave it out: nothing is confirmed. To be asked nothing: --no-input',
  ],
  [['list.csv', '--csv'], 'Unknown option --csv', 'For input in CSV: --format csv'],
  [
    ['list.csv', '--json'],
    'Unknown option --json',
    'For input in JSON: --format json. For output in JSON: --output json',
  ],
  [
    ['list.csv', '--columns', 'ID,,name'],
    'The first row of list.csv is a header, because it has the given names of columns',
    'Leave out --columns',
  ],
  [
    ['quoted.csv'],
    'quoted.csv has no columns "id", "name": line 1 has only "id,name"',
    `To remove the quotes around each row, pipe the file through this, and import the output with -: ${unquote}`,
  ],
  ...['id=Nr name=Kind', 'id=Nr; name=Kind'].map(
    (map): Mistake => [
      ['kinds.csv', '--map', map],
      `kinds.csv has no columns "${map.slice(3)}", "name": line 1 has only "Nr", "Kind"`,
      separatePairsHint,
    ],
  ),
  [
    ['kinds.csv', '--map', 'id=Nr', 'name=Kind'],
    'An argument looks like a pair of --map',
    separatePairsHint,
  ],
  [
    ['kinds.csv', '--map', 'id=Nr,name=German', 'Name'],
    'Name could not be read: no such file or directory',
    'Check the name of the file, put a name with spaces in quotes, or use "-" for stdin',
  ],
  [
    ['list.csv', '--encoding', 'utf8bom'],
    'The encoding is unknown',
    'For UTF-8, leave out --encoding. For example: --encoding windows-1252. More names: plants import --help',
  ],
  [
    ['open.json'],
    'open.json:1: Not JSON: there is no comma or "}" after a value (line 2, column 1)',
    'Correct the input, and run the command again',
  ],
  [
    ['keys.json'],
    'Several keys of keys.json could be the name: "Name", "NAME"',
    'Choose one with --map name=KEY',
  ],
  [
    ['pages.ndjson', '--format', 'ndjson', '--dry-run'],
    'pages.ndjson is not NDJSON: it begins with an array',
    'Replace --format ndjson with --format json',
  ],
])('an import of %j has an error that ends the matter', async (args, message, hint) => {
  const user = new ImportSandbox()
  user.write('list.csv', 'id,tag,name\n1,wet,Fern\n')
  user.write('kinds.csv', 'Nr,Kind\n1,Fern\n')
  user.write('quoted.csv', '"id,name"\r\n"1,""Fern, wet"""\r\n')
  user.write('keys.json', '[{"id":1,"Name":"A","NAME":"B"}]')
  user.write('open.json', '[{"id":1,"name":"Ash"\n]')
  user.write('pages.ndjson', '[{"id":1,"name":"A"}]\n')
  const { err } = await user.run(['import', ...args, '--output', 'text'])
  expect(err).toContain(`plants: ${message}\n  ${hint}\n`)
})

test.skipIf(isWindows)('the hint about quotes around rows leads to an import', async () => {
  const user = new ImportSandbox()
  const input = '"id,name"\r\n"1,""Fern, wet"""\r\n'
  expect(await user.import('-', execFileSync('sh', ['-c', unquote], { input }))).toMatchObject({
    code: 0,
  })
  expect(await user.list()).toBe('{"id":1,"name":"Fern, wet"}\n')
})

const chooseHint =
  'Choose the columns by name or number with --map id=COLUMN,name=COLUMN ' +
  'or, if the plants have no ids, with --map name=COLUMN --by-name. ' +
  'If the table has no header, add --columns id,name'

test.each([
  ['a.csv kinds.csv', `Import it with its own command: plants import kinds.csv. ${chooseHint}`],
  [
    'kinds.csv a.csv',
    `${chooseHint}. If the other files have other columns or keys, import them one by one`,
  ],
])('of the files %s, whose columns differ, nothing is stored', async (files, hint) => {
  const user = new ImportSandbox()
  user.write('a.csv', 'id,name\n1,Fern\n')
  user.write('kinds.csv', 'Nr,Kind\n2,Moss\n')
  const result = await user.import(files)
  const message = 'kinds.csv has no columns "id", "name": line 1 has only "Nr", "Kind"'
  expect(result).toEqual({ code: 2, err: `plants: ${message}\n  ${hint}\n` })
  expect(await user.run('list')).toMatchObject({ out: '' })
  expect(await user.import('kinds.csv --map id=Nr,name=Kind')).toMatchObject({ created: 1 })
})
