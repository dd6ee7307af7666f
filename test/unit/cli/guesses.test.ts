import { describe, expect, test } from 'vitest'
import { foreignWords } from '../../../src/cli/guesses.js'
import { shellWord } from '../../../src/platform/shell.js'
import { commandAt, program, treeOf } from '../../helpers/helps.js'
import { World } from '../../helpers/world.js'

/** The command, the words that it does not take, and the hint. */
const strays: [command: string, words: string, hint: string][] = [
  ['create', '8 Fern', 'Use: --id 8 --name Fern'],
  ['create', 'Fern', 'Use: --id next --name Fern'],
  ['create', 'Bleeding Heart', `Use: --id next --name ${shellWord('Bleeding Heart')}`],
  ['create', 'id=9 name=Fern', 'Use: --id 9 --name Fern'],
  ['create', 'fern.json', 'Use: --file fern.json'],
  ['create', 'list.csv', 'Use: plants import list.csv'],
  ['create', '-- -x.csv', 'Use: plants import ./-x.csv'],
  ['create --id 51', 'Moss', 'Use: --name Moss'],
  ['create --name Fern', '10', 'Use: --id 10'],
  ['list', 'Salbei', 'Use: --search Salbei'],
  ['list', '3', 'Use: plants get 3'],
  ['list', 'tag=shade', 'Use: --tag shade'],
  ['list', 'tag:shade', 'Use: --tag shade'],
  ['list', 'id=3', 'Use: plants get 3'],
  ['list', 'tags', 'Use: plants count --by tag'],
  ['list', './wide.db', 'Use: --store ./wide.db'],
  ['list', 'tokens', 'Use: plants tokens list'],
  ['list', 'stores', 'Use: plants stores list'],
  ['count', 'Salbei', 'Use: --search Salbei'],
  ['count', 'tags', 'Use: --by tag'],
  ['update 3', "O'Neill's", `Use: --name ${shellWord("O'Neill's")}`],
  ['update 3', 'name=Moss tag=wet', 'Use: --name Moss --tag wet'],
  ['get', 'Salbei', 'To find plants by their texts: plants list --search Salbei'],
  ['delete', 'Salbei', 'To find plants by their texts: plants list --search Salbei'],
  ['update', 'Salbei --tag wet', 'To find plants by their texts: plants list --search Salbei'],
  ['serve', './wide.db 0', 'Use: --store ./wide.db --port 0'],
  ['serve', '127.0.0.1:0', 'Use: --host 127.0.0.1 --port 0'],
  ['serve -p 0', './wide.db', 'Use: --store ./wide.db'],
  ['doctor', './wide.db', 'Use: --store ./wide.db'],
  ['restore --yes plants.bak', './new.db', 'Use: --store ./new.db'],
  [
    'restore --yes',
    'my plants.bak',
    `A text with spaces is in quotes: ${shellWord('my plants.bak')}`,
  ],
  ['export', 'my list.csv', `A text with spaces is in quotes: ${shellWord('my list.csv')}`],
  ['backup', 'my plants.bak', `A text with spaces is in quotes: ${shellWord('my plants.bak')}`],
  ['tokens revoke', 'my laptop', `A text with spaces is in quotes: ${shellWord('my laptop')}`],
  ['config', 'output json', 'Use: plants config set output json'],
  ['config', 'timeout', 'Use: plants config get timeout'],
  ['config set', 'output=json', 'Use: plants config set output json'],
  ['config get', 'timeout 5m', 'Use: plants config set timeout 5m'],
  ['config list', 'timeout', 'Use: plants config get timeout'],
]

describe('arguments that a command does not take', () => {
  test.each(strays)(
    'belong to options, and what is proposed is accepted: plants %s %s',
    async (command, words, hint) => {
      const user = await gardener()
      const { code, err } = await user.run(`${command} ${words}`)
      expect([code, err.split('\n').slice(1)]).toEqual([2, [`  ${hint}`, '']])
      const proposed = hint.replace(/^.*?: /, '')
      const line = proposed.startsWith('plants ')
        ? proposed.slice('plants '.length)
        : `${command} ${proposed}`
      const signal = AbortSignal.timeout(command.startsWith('serve') ? 500 : 60_000)
      const env = { PLANTS_SERVE_TOKEN: 's3cret-of-a-service' }
      expect((await user.run(wordsOf(line), { signal, env })).code).toBe(0)
    },
  )

  test.each([
    ['create --id 50 --name Bleeding Heart', `--name ${shellWord('Bleeding Heart')}`],
    [
      'create --id 50 -nBleeding Heart of gold --tag wet',
      `--name ${shellWord('Bleeding Heart of gold')}`,
    ],
    ['create -i=50 -n=Bleeding Heart', `--name ${shellWord('Bleeding Heart')}`],
    ['create --id 50 --name Fern --tag=deep shade', `--tag ${shellWord('deep shade')}`],
    ['list --search canina rosa', `--search ${shellWord('canina rosa')}`],
    ['update 3 --name Sword fern', `--name ${shellWord('Sword fern')}`],
    ['delete --tag deep shade', `--tag ${shellWord('deep shade')}`],
  ])('may be words of a text without quotes: plants %s', async (line, text) => {
    const { code, err } = await new World().run(line)
    expect([code, err.split('\n')[1]]).toEqual([2, `  A text with spaces is in quotes: ${text}`])
  })

  test.each([
    ['list plants', 'Usage: plants list [options]. See: plants list --help'],
    ['list all', 'Usage: plants list [options]. See: plants list --help'],
    ['serve 99999999', 'Usage: plants serve [options]. See: plants serve --help'],
    ['serve localhost:99999', 'Usage: plants serve [options]. See: plants serve --help'],
    ['create --name Fern', 'Add --id next'],
    ['create --name Fern --idempotency-key k', 'Add --id'],
    ['create --name Fern --id 1.5', 'For example: --id 1'],
    ['create --name Fern --id abc', 'For example: --id 1'],
    ['export a.csv b.csv', 'Usage: plants export [options] [file]. See: plants export --help'],
    ['create 8', 'Use: --id 8 --name NAME'],
    ['list next', 'Use: --search next'],
    ['list name=Fern', 'Use: --search Fern'],
    ['list name=Fern tag=wet', 'Usage: plants list [options]. See: plants list --help'],
    ['update 3 id=4 --name Moss', 'For example: 1'],
    [
      'config get timeout output',
      'Usage: plants config get [options] <setting>. See: plants config get --help',
    ],
    ['create -5 Fern', 'Use: --id=-5 --name Fern'],
    ['create {"id":8}', 'Use: --file PATH, or --file - for JSON on stdin'],
    [`list ${'x'.repeat(250)}`, 'Usage: plants list [options]. See: plants list --help'],
    [
      'config set output',
      'Usage: plants config set [options] <setting> <value>. See: plants config set --help',
    ],
    ['tokens create laptop', 'Use: --note "TEXT"'],
    ['tokens create --note my laptop', 'Use: --note "TEXT"'],
    ['get 1-3', 'A range is not supported: give each id, such as 1 2 3'],
    ['get 7,9', 'Separate ids by spaces: 7 9'],
  ])('get a hint that is right: plants %s', async (line, hint) => {
    expect((await new World().run(line)).err.split('\n')[1]).toBe(`  ${hint}`)
  })

  test.each([
    'auth s3cret',
    'auth login s3cret',
    'auth status s3cret',
    'help auth login s3cret',
    'tokens create s3cret',
    'tokens create --note web s3cret',
    'serve postgres://me:s3cret@db.example/plants',
    'list https://me:s3cret@plants.example',
    'doctor https://me:s3cret@plants.example',
    'config set store=postgres://me:s3cret@db.example/plants',
    'config store postgres://me:s3cret@db.example/plants',
    'config store=postgres://me:s3cret@db.example/plants',
    'doctor me:s3cret@db.example/plants',
    'list postgres:/me:s3cret@db/plants',
    'serve postgresql:me:s3cret@db/',
    'config set store=me:s3cret@db',
    'config store=me:s3cret@db',
    'backup postgres://me:s3cret@db/a c.db',
    'tokens revoke plants_s3cret web',
    'list --token:s3cret',
    'doctor ./(https://me:s3cret-plants.example)',
    'search --token s3cret',
    'find fern --password=s3cret',
    'list --format s3cret',
    'list --json=s3cret',
    'get --id s3cret',
    'list --filter s3cret/k.db',
    'set store postgres://me:s3cret@db/plants',
    'set store=postgres://me:s3cret@db/plants',
    'store=postgres://me:s3cret@db/plants --help',
    'list -ps3cret/k.db',
    'create postgres://me:s3cret@db/plants',
    'list fern postgres://me:s3cret@db/plants',
    'count --tag a postgres://me:s3cret@db/plants b',
    'search postgres://me:s3cret@db/plants',
    'list -f s3cret',
    'list --db postgres://me:s3cret@db/plants',
  ])('are not repeated where they may be secret: plants %s', async (line) => {
    expect((await new World().run(line)).code).toBe(2) // World fails by itself when it shows a token
  })
})

const helped = [
  'list',
  'count',
  'doctor',
  'get',
  'update',
  'delete',
  'tokens list',
  'list --tag shade',
]
test.each([...helped, 'import', 'export', 'backup', 'restore', 'config get'])(
  'plants %s help is help',
  async (line) => {
    const user = new World()
    const words = line.replace(/ --.*/, '')
    expect(await user.run(`${line} help`)).toEqual(await user.run(`${words} --help`))
  },
)

test('a file named help is a file', async () => {
  const user = new World()
  user.write('help', '{"id":1,"name":"Fern"}\n')
  expect((await user.run('import help')).code).toBe(0)
  expect((await user.run('list')).out).toBe('{"id":1,"name":"Fern"}\n')
})

test.each([
  ['list -n 1', 'list --limit 1'],
  ['list -L1', 'list --limit 1'],
  ['export -n=1 -o CSV', 'export --limit 1 --output csv'],
  ['list --sort Name -o Json', 'list --sort name --output json'],
  ['count --by TAG', 'count --by tag'],
  [
    'import --format NDJSON --if-exists Skip a.ndjson',
    'import --format ndjson --if-exists skip a.ndjson',
  ],
  ['delete 3 -f --dry-run', 'delete 3 --yes --dry-run'],
  ['delete --force 3 --dry-run', 'delete --yes 3 --dry-run'],
  ['list --debug -q', 'list --verbose -q'],
  ['list --version', '--version'],
  ['tokens create -V', '--version'],
])('plants %s is plants %s', async (typed, meant) => {
  const user = await gardener()
  user.write('a.ndjson', '{"id":3,"name":"Fern"}\n')
  await user.run('create --id 4 --name Fern --tag wet')
  const seconds = /"(seconds|rate)":[\d.]+/g
  const [first, second] = [await user.run(typed), await user.run(meant)]
  expect({ ...first, out: first.out.replaceAll(seconds, '') }).toEqual({
    ...second,
    out: second.out.replaceAll(seconds, ''),
  })
  expect([first.code, first.out === '']).toEqual([0, false])
})

test('a limit is given once, by whichever of its names', async () => {
  expect((await new World().run('list -n 1 -L 2')).err).toContain('--limit was given twice\n')
})

test('a short option takes its value after an equals sign, too', async () => {
  const world = new World()
  await world.run(['create', '-i=1', '-n=Fern', '-t==x', '-qo=text', '-s=./x.db'])
  expect((await world.run('list -s=./x.db -o=csv')).out).toBe('id,name,tag\n1,Fern,=x\n')
  expect((await world.run('list -o=xml')).err).toContain('but was "xml"\n')
  expect((await world.run('crate -o=json')).err).toMatch(/^{"error":400,/)
  // Which is a value of its own
  expect((await world.run('list -o =csv')).err).toContain('but was "=csv"\n')
})

describe('a suggestion', () => {
  test.each([
    ['search fern', 'Use: plants list --search fern'],
    ['search', 'Use: plants list --search TEXT'],
    ['find Bleeding Heart --limit 3', `Use: plants list --search ${shellWord('Bleeding Heart')}`],
    ['help search', 'Use: plants list --search TEXT'],
    ['status', 'Did you mean doctor?'],
    ['List', 'Did you mean list?'],
    ['GET 3', 'Did you mean get?'],
    ['lsit', 'Did you mean list?'],
    ['toknes', 'Did you mean tokens?'],
    ['udpaet', 'Did you mean update?'],
    ['lsits', 'See: plants --help'],
    ['stores ad x y', 'Did you mean add?'],
    ['set output json', 'Use: plants config set output json'],
    ['output json', 'Use: plants config set output json'],
    ['set', 'See: plants --help'],
    ['emport', 'See: plants --help'],
    ['query fern', 'See: plants --help'],
    ['describe 3', 'Did you mean get?'],
    ['load list.csv', 'Did you mean import?'],
    ['dump', 'Did you mean export?'],
    ['serach fern', 'Use: plants list --search fern'],
    ['serach --help', 'Use: plants list --search TEXT'],
    ['tags', 'Did you mean count --by tag?'],
    ['edit 3', 'Did you mean update?'],
    ['view 3', 'Did you mean get?'],
    ['auth list', 'See: plants auth --help'],
    ['apply -f list.csv', 'Did you mean import --if-exists update?'],
    ['logout', 'Did you mean auth logout?'],
    ['lgoin', 'Did you mean auth login?'],
    ['whoami', 'Did you mean auth status?'],
    ['use-context garden', 'Did you mean stores use?'],
    ['use-contxt garden', 'Did you mean stores use?'],
    ['config use-context garden', 'Did you mean stores use?'],
    ['stores use-context garden', 'See: plants stores --help'],
    ['config edit', 'See: plants config --help'],
    ['config search timeout', 'See: plants config --help'],
    ['alias', 'See: plants --help'],
    ['stats', 'See: plants --help'],
    ['nope --help', 'See: plants --help'],
    ['stores nope -h', 'See: plants stores --help'],
    ['stores help nope', 'See: plants stores --help'],
    // What begins one command alone, of which two letters are missing at most
    ['li', 'Did you mean list?'],
    ['crea', 'Did you mean create?'],
    ['impo', 'Did you mean import?'],
    ['dele 3', 'Did you mean delete?'],
    ['l', 'See: plants --help'],
    ['c', 'See: plants --help'],
    ['re', 'See: plants --help'],
    ['tokens revo', 'Did you mean revoke?'],
    ['tokens rev', 'See: plants tokens --help'],
    ['list --lim 2', 'Did you mean --limit?'],
    ['list --s x', 'See: plants list --help'],
    ['create --title Fern', 'See: plants create --help'],
    ['upgrade', 'See: plants --help'],
    ['tokens rotate web', 'See: plants tokens --help'],
    ['stores status', 'See: plants stores --help'],
    ['list --json', 'Did you mean --output json?'],
    ['list --json id,name', 'Did you mean --output json?'],
    ['list --format json', 'Did you mean --output json?'],
    ['list --format=csv', 'Did you mean --output csv?'],
    ['list --format yaml', 'Did you mean --output?'],
    ['list --page 2', 'See: plants list --help'],
    ['list --no-headers', 'Did you mean --output ndjson?'],
    ['list --filter tag=x', 'Use: --tag x'],
    ['list --filter=tag=x', 'Use: --tag x'],
    ['list --where name=Fern', 'Use: --search Fern'],
    ['list -l tag=x', 'Use: --tag x'],
    ['list --filter x', 'See: plants list --help'],
    ['list --id 3', 'Use: plants get 3'],
    ['list --ids 1,3', 'Use: plants get 1 3'],
    ['list --ids', 'See: plants list --help'],
    ['list --offset 2', 'See: plants list --help'],
    ['list --csv', 'Did you mean --output csv?'],
    ['list --jsonl', 'Did you mean --output ndjson?'],
    ['list --out json', 'Did you mean --output json?'],
    ['list --out list.csv', 'For a file: plants export FILE'],
    ['list --order desc', 'Did you mean --desc?'],
    ['list --order-by Tag', 'Did you mean --sort tag?'],
    ['list --order asc', 'See: plants list --help'],
    ['list --columns name', 'See: plants list --help'],
    ['list --all', 'See: plants list --help'],
    ['list --note text', 'See: plants list --help'],
    ['count --group-by tag', 'Did you mean --by tag?'],
    ['count by tag', 'Use: --by tag'],
    ['delete --filter tag=x', 'Use: --tag x'],
    ['delete --filter id=3', 'See: plants delete --help'],
    ['delete --filter name=Fern', 'See: plants delete --help'],
    ['delete --name Fern', 'See: plants delete --help'],
    ['count --name Fern', 'Did you mean --search?'],
    ['export --where id=3', 'Use: plants get 3'],
    ['--color get 3', 'For example: --color always'],
    ['list --database ./x.db', 'Did you mean --store?'],
    ['export -f csv', 'Did you mean --output csv?'],
    ['export -f list.csv', 'The file is an argument: plants export FILE'],
    ['export --out -', 'The file is an argument: plants export -'],
    ['import -f list.csv', 'The file is an argument: plants import FILE'],
    ['import list.csv -f csv', 'Did you mean --format csv?'],
    ['import list.csv --csv', 'Did you mean --format csv?'],
    ['import list.csv --json', 'Did you mean --output json?'],
    ['get -f 3', 'See: plants get --help'],
    ['create --if-exists same', 'Did you mean import --if-exists?'],
    ['get --if-exists', 'See: plants get --help'],
    ['get --ids 3', 'The id is an argument: plants get ID'],
    ['list --watch', 'See: plants list --help'],
    ['count --page 2', 'See: plants count --help'],
    ['create --nmae=Fern', 'Did you mean --name?'],
    ['list --lmiit 3', 'Did you mean --limit?'],
    ['list --hlep', 'Did you mean --help?'],
    ['list --qiuet', 'Did you mean --quiet?'],
    ['list --x', 'See: plants list --help'],
    ['get --id 3', 'The id is an argument: plants get ID'],
    ['import --file list.csv', 'The file is an argument: plants import FILE'],
    ['backup --out x.bak', 'The file is an argument: plants backup FILE'],
    ['stores add --name g', 'The name is an argument: plants stores add NAME ADDRESS'],
  ])('is right, or there is none: plants %s', async (line, hint) => {
    const { code, err } = await new World().run(line)
    expect([code, err.split('\n')[1]]).toEqual([2, `  ${hint}`])
  })

  test('for a word of other programs is from a table of twenty, and none for a word of this one', () => {
    expect(foreignWords.size).toBeLessThanOrEqual(20)
    const options = treeOf(program).flatMap(({ options }) => options.map(({ long }) => long))
    for (const [word, suggestion] of foreignWords) {
      const [first = '', ...others] = suggestion.split(' ')
      expect(commandAt([word])).toBe(undefined)
      expect(suggestion).not.toBe(word)
      const names = /^[a-z]+(?: [a-z]+)?(?= --|$)/.exec(suggestion)?.[0].split(' ')
      if (names !== undefined) expect(commandAt(names)).toBeDefined()
      for (const option of [first, ...others].filter((each) => each.startsWith('--')))
        expect(options).toContain(option)
    }
  })
})

/** Somebody with plants, tokens and files. */
async function gardener(): Promise<World> {
  const user = new World({ timeout: '30s' })
  for (const store of ['local', './wide.db', './new.db'])
    await user.run(['create', '--id', '3', '--name', 'Salbei', '--tag', 'shade', '--store', store])
  for (const name of ['plants.bak', 'my plants.bak']) await user.run(['backup', name])
  await user.run(['tokens', 'create', '--note', 'my laptop'])
  user.write('fern.json', '{"id":70,"name":"Fern"}')
  user.write('list.csv', 'id,name\n71,Fern\n')
  user.write('-x.csv', 'id,name\n72,Fern\n')
  return user
}

/** As a shell reads them. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:'[^']*'|"[^"]*"|\\'|[^\s'"\\]|\\(?!'))+/g) ?? []
  return words.map((word) => word.replace(/'([^']*)'|"([^"]*)"|\\(?=')(')/g, '$1$2$3'))
}
