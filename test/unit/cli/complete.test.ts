import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { topics } from '../../../src/cli/commands/index.js'
import { formatNames } from '../../../src/plant/records.js'
import { outputFormats } from '../../../src/platform/values.js'
import { commandNames, program, treeOf } from '../../helpers/helps.js'
import { Importing } from '../../helpers/importing.js'
import { type RunOptions, runPlants } from '../../helpers/run.js'
import { rows, workbook } from '../../helpers/workbook.js'
import { World } from '../../helpers/world.js'

/** What a line can go on with: `files` and `prefix` are what its shell is told besides. */
async function complete(line: string, world: RunOptions = {}) {
  const { code, out, err } = await runPlants(['__complete', '--', ...line.split(' ')], world)
  const [first = '', ...lines] = out.replace(/\n$/, '').split('\n')
  const [files, prefix] = first.split('\t')
  return {
    code,
    err,
    files,
    prefix,
    words: lines.map((text) => text.split('\t')[0]),
    meanings: lines.map((text) => text.split('\t')[1]),
  }
}

const words = async (line: string, world?: RunOptions) => (await complete(line, world)).words
const nothing = { code: 0, err: '', files: 'none', prefix: '', words: [], meanings: [] }

const settingFlags = ['--store', '--output', '--timeout', '--ca-cert', '--allow-http']
const globalFlags = [...settingFlags, '--verbose', '--quiet', '--no-input', '--no-color']

describe('every command', () => {
  test('is completed with all that it has', async () => {
    for (const command of treeOf(program.root).filter((each) => each.name() !== 'help')) {
      const start = `${namesOf(command).join(' ')} `.trimStart()
      const own = command.options.map(({ long = '' }) => long)
      expect(own).toEqual(expect.arrayContaining(globalFlags))
      expect(await words(`${start}-`)).toEqual([...own, '--help'])
      const below = command.commands.map((each) => each.name())
      if (below.length > 0) expect(await words(start)).toEqual(command.parent ? [...below, 'help'] : below)
    }
  })

  test('is named for help, and so is every topic', async () => {
    expect(await words('help ')).toEqual([...commandNames, ...Object.keys(topics)])
    expect(await words('help stores ')).toEqual(['add', 'init', 'list', 'use', 'rename', 'remove'])
    expect(await words('stores help ')).toEqual(['add', 'init', 'list', 'use', 'rename', 'remove'])
    for (const line of ['help formats ', 'help create ', 'help stores add ', 'stores help add '])
      expect(await words(line)).toEqual([])
  })

  test('is found by its other names, which are not offered', async () => {
    expect(await words('ls --li')).toContain('--limit')
    expect(await words('stores rm ')).toEqual(await words('stores remove '))
    expect(await words('help stores rm ')).toEqual([])
    expect(await words('l')).not.toContain('ls')
  })

  test('is told with what it does', async () => {
    const { words, meanings } = await complete('')
    expect(meanings[words.indexOf('create')]).toBe('create a plant')
  })
})

describe('what a store has', () => {
  test('is offered: ids with their names, tags and tokens, of a file only', async () => {
    const user = new World()
    const store = './x.db'
    for (const [id, name, tag] of [
      ['7', 'Fern', 'shade'],
      ['-3', 'Tree\tfern\u001b', 'shade'],
      ['12', 'Moss', 'in the dark'],
    ] as const)
      await user.run(['create', `--id=${id}`, '--name', name, '--tag', tag, '--store', store])
    await user.run(['tokens', 'create', '--note', 'laptop', '--store', store])
    await user.run(['tokens', 'create', '--note', 'old', '--store', store])
    await user.run(['tokens', 'revoke', 'old', '--store', store])
    const at = (line: string) => complete(line, { cwd: user.home })
    expect(await at(`get --store ${store} `)).toMatchObject({
      ...nothing,
      words: ['-3', '7', '12'],
      meanings: expect.arrayContaining(['Fern', 'Moss']),
    })
    for (const line of [`-s ${store} delete 1 `, `update -s=${store} `]) expect((await at(line)).err).toBe('')
    expect((await at(`list --store ${store} --tag `)).words).toEqual(['shade'])
    expect(await at(`tokens revoke -s ${store} `)).toMatchObject({ ...nothing, words: ['1'], meanings: ['laptop'] })
    for (const other of ['./missing.db', 'http://127.0.0.1:9', 'postgres://127.0.0.1:9/x', 'nobody'])
      expect(await at(`get --store ${other} `)).toEqual(nothing)
    expect(await at(`tokens revoke -s ./none.db `)).toEqual(nothing)
    expect(existsSync(`${user.home}/missing.db`)).toBe(false)
  })
})

describe('flags', () => {
  test('are found before the command, too', async () => {
    expect(await words('--')).toEqual(['--version', ...globalFlags, '--help'])
    expect(await words('--store x.db create --n')).toContain('--name')
    expect(await words('--verbose stores ')).toEqual(['add', 'init', 'list', 'use', 'rename', 'remove', 'help'])
  })

  test('that were given are not offered again, whatever they were called', async () => {
    for (const given of ['--id 1', '--id=1', '--id=-1']) expect(await words(`create ${given} --`)).not.toContain('--id')
    expect(await words('-v create --')).not.toContain('--verbose')
    expect(await words('--verbose -')).not.toContain('--verbose')
    expect(await words('create --verbose -v')).toEqual(['-i', '-n', '-t', '-f', '-s', '-o', '-q', '-h'])
  })

  test('in their short form are offered to who writes one', async () => {
    expect(await words('-v')).toEqual(['-V', '-s', '-o', '-v', '-q', '-h'])
    expect(await words('delete 1 -y')).toContain('-y')
  })

  test('in their short form have the values of the long one', async () => {
    expect(await words('list -o ')).toEqual(outputFormats)
    expect(await complete('create -f ')).toMatchObject({ files: 'any', words: [] })
    expect(await words('create -n Fern --na')).not.toContain('--name')
  })

  test('are offered at once where no argument can stand', async () => {
    expect((await words('create ')).slice(0, 3)).toEqual(['--id', '--name', '--tag'])
    expect(await words('create f')).toEqual([])
    for (const command of ['get', 'update', 'delete']) expect(await words(`${command} 1 `)).toContain('--store')
  })

  test('of one command are not those of another', async () => {
    expect(await words('tokens create --')).toContain('--note')
    expect(await words('tokens create --')).not.toContain('--name')
    expect(await words('crate --')).toEqual(['--version', ...globalFlags, '--help'])
  })
})

describe('values', () => {
  test.each([
    ['import --format ', ['ndjson', 'json', 'csv', 'tsv']],
    ['import --if-exists ', ['error', 'skip', 'same', 'update']],
    ['serve --log-level ', ['info', 'warn', 'error', 'silent']],
    ['--output ', outputFormats],
    ['list --output te', outputFormats],
    ['count -o ', outputFormats],
    ['export -o ', formatNames],
    ['config set output ', outputFormats],
    ['config set stores.team.allow-http ', ['true', 'false']],
    ['config get ', ['store', 'output', 'timeout', 'ca-cert']],
    ['completion ', ['bash', 'zsh', 'fish']],
  ])('of "%s" are %j', async (line, expected) => {
    expect(await complete(line)).toMatchObject({ files: 'none', prefix: '', words: expected })
  })

  test('stand behind "=", too', async () => {
    expect(await complete('list --output=te')).toMatchObject({
      files: 'none',
      prefix: '--output=',
      words: outputFormats,
    })
    expect(await complete('create --file=fe')).toMatchObject({ files: 'any', prefix: '--file=', words: [] })
    expect(await complete('--store=unix:/ru')).toMatchObject({ files: 'any', prefix: '--store=unix:', words: [] })
    expect(await complete('create --yes=')).toEqual(nothing)
    expect(await complete('--verbose=')).toEqual(nothing)
  })

  test.each([
    ['create --file ', 'any'],
    ['import ', 'any'],
    ['import a.ndjson b', 'any'],
    ['import --rejects ', 'any'],
    ['backup ', 'any'],
    ['stores add garden ', 'any'],
    ['config set ca-cert ', 'any'],
    ['config set stores.team.address ', 'any'],
    ['--store ./', 'any'],
    ['--store ~', 'any'],
    ['--store plants/ga', 'any'],
    ['--store sqlite:', 'any'],
    ['--store ', 'any'],
    ['config set store ', 'any'],
    ['--store https:', 'none'],
    ['backup plants.bak ', 'none'],
  ])('of "%s" are files: %s', async (line, files) => {
    expect((await complete(line)).files).toBe(files)
  })

  test.each([
    'get ',
    'delete 1',
    'create --id ',
    'create --name ',
    'create --name --',
    'stores add ',
    'create -- ',
    'create -- --',
    'import -- ',
    'config set timeout ',
    'config set nothing ',
    'config set stores.team.nothing ',
    'crate ',
  ])('nothing is offered for what people must know: "%s"', async (line) => {
    expect(await complete(line)).toEqual(nothing)
  })
})

describe('saved stores', () => {
  const stores = { garden: { address: '/srv/garden.db' }, team: { address: 'https://plants.example.com/v1' } }

  function user(settings: Record<string, unknown> = { stores }): World {
    const somebody = new World()
    somebody.save(settings)
    return somebody
  }

  test('are offered by name, with their address', async () => {
    const { env } = user()
    const local = 'your own store, which is built in'
    const names = {
      words: ['garden', 'team', 'local'],
      meanings: ['/srv/garden.db', 'https://plants.example.com/v1', local],
    }
    expect(await complete('--store ', { env })).toMatchObject({ ...names, files: 'any' })
    expect(await complete('stores use ', { env })).toMatchObject(names)
    expect(await complete('config set store ', { env })).toMatchObject(names)
    expect(await complete('stores remove ', { env })).toMatchObject({ words: ['garden', 'team'], files: 'none' })
  })

  test('have settings', async () => {
    const { env } = user()
    const names = ['address', 'timeout', 'ca-cert', 'allow-http', 'token-command']
    const ofStores = ['garden', 'team'].flatMap((store) => names.map((name) => `stores.${store}.${name}`))
    expect((await words('config set ', { env })).slice(-10)).toEqual(ofStores)
  })

  test('cannot drive a terminal or add a line, and show no password', async () => {
    const hostile = { bad: { address: 'a\u001b[2J\tb\nc\u202e' }, secret: { address: 'https://me:s3cret@x.example' } }
    const unnamed = { 'a b': { address: '/x' }, "'$(id)": { address: '/x' }, 'tab\t': { address: '/x' } }
    const { env } = user({ stores: { ...hostile, ...unnamed } })
    const { words, meanings } = await complete('stores remove ', { env })
    expect({ words, meanings }).toEqual({
      words: ['bad', 'secret'],
      meanings: ['a\\u{1b}[2J\\u{9}b\\u{a}c\\u{202e}', 'https://***@x.example'],
    })
  })

  test('never bring their tokens along', async () => {
    const address = 'https://plants.example.com/v1'
    const { env } = user({ stores, tokens: { [address]: { token: 's3cret-token', savedAt: '2026-01-02T03:04:05Z' } } })
    for (const line of ['--store ', 'stores remove ', 'config set ', 'auth token --store ']) {
      expect((await runPlants(['__complete', '--', ...line.split(' ')], { env })).out).not.toContain('s3cret')
    }
  })
})

describe('the file of an import', () => {
  const importing = () => {
    const somebody = new Importing()
    const sheets = { Plants: rows(['Nr', 'Common name', 'Art'], ['1', 'Fern', '']), 'Our notes': rows(['x']) }
    somebody.write('stock.xlsx', workbook({ sheets }))
    somebody.write('plants.csv', 'My plants;;\n\nNo;Plant name;Familie\n1;Fern;\n')
    return { cwd: somebody.folder, env: { PLANTS_STORE: somebody.store } }
  }

  test('has sheets; one that a shell would have to quote is its number', async () => {
    const world = importing()
    const expected = { code: 0, words: ['Plants', '2'], meanings: ['', 'Our notes'] }
    expect(await complete('import stock.xlsx --sheet ', world)).toMatchObject({ ...expected, prefix: '' })
    expect(await complete('import stock.xlsx -q --sheet=P', world)).toMatchObject({ ...expected, prefix: '--sheet=' })
  })

  test.each([
    ['import plants.csv --map ', '', ['id=', 'name=', 'tag=']],
    ['import plants.csv --map id=', 'id=', ['No', 'Familie']],
    ['import plants.csv --map id=No,t', 'id=No,', ['id=', 'name=', 'tag=']],
    ['import plants.csv --map=id=No,tag=', '--map=id=No,tag=', ['No', 'Familie']],
    ['import stock.xlsx --sheet 1 --map id=', 'id=', ['Nr', 'Art']],
    ['import stock.xlsx --map id=', '', []], // which of the two sheets?
    ['import missing.xlsx --map id=', '', []],
    ['import plants.csv --sheet ', '', []],
  ])('has columns: %s', async (line, prefix, names) => {
    expect(await complete(line, importing())).toMatchObject({ code: 0, err: '', files: 'none', prefix, words: names })
  })
})

describe('whatever is wrong, less is offered and nothing is said', () => {
  test.each<[string, string | Uint8Array]>([
    ['no JSON', '{"version":1,'],
    ['of a newer version', '{"version":2}'],
    ['not right', '{"version":1,"stores":{"garden":5}}'],
    ['empty', ''],
    ['not UTF-8', new Uint8Array([0xff])],
  ])('with settings that are %s, which stay as they are', async (_, settings) => {
    const somebody = new World()
    somebody.save(settings)
    const before = readFileSync(somebody.file)
    expect(await complete('--store ', { env: somebody.env })).toMatchObject({ code: 0, err: '', words: ['local'] })
    expect(readFileSync(somebody.file)).toEqual(before)
  })

  test('with settings that cannot be read', async () => {
    const somebody = new World()
    mkdirSync(somebody.file, { recursive: true })
    expect(await complete('--store ', { env: somebody.env })).toMatchObject({ code: 0, err: '', words: ['local'] })
  })

  test('with variables that are wrong', async () => {
    const env = { PLANTS_OUTPUT: 'xml', PLANTS_STORE: 'http://', PLANTS_TIMEOUT: 'soon', PLANTS_TOKEN: '\n' }
    expect(await complete('--output ', { env })).toMatchObject({ code: 0, err: '', words: outputFormats })
  })

  test('and nothing is written', async () => {
    const somebody = new World()
    await complete('--store ', { env: somebody.env })
    expect(existsSync(somebody.config)).toBe(false)
  })
})

test('the question of the scripts is in no help', async () => {
  for (const command of treeOf(program.root))
    expect((await runPlants([...namesOf(command), '--help'])).out).not.toContain('__complete')
})

function namesOf(command: Command): string[] {
  return command.parent ? [...namesOf(command.parent), command.name()] : []
}
