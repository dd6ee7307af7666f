import { mkdirSync, rmSync } from 'node:fs'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { OtherFlags } from '../../../src/cli/command.js'
import { topics } from '../../../src/cli/commands/help.js'
import { outputFormats } from '../../../src/config/option-values.js'
import { commandNames, program, treeOf } from '../../helpers/helps.js'
import type { RunOptions } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

/** The completions of a line: their common prefix before "|", the words, and FILES if the shell adds files. */
async function complete(line: string, user = new World(), options?: RunOptions) {
  const { code, out, err } = await user.run(['__complete', '--', ...line.split(' ')], options)
  expect({ line, code, err }).toEqual({ line, code: 0, err: '' })
  const [[files, prefix] = [], ...candidates] = out.split('\n').map((each) => each.split('\t'))
  const words = candidates.slice(0, -1).map(([word = '']) => word)
  const shown = [`${prefix && `${prefix}|`}${words.join(' ')}`, files === 'any' ? 'FILES' : '']
  return {
    words,
    meanings: candidates.slice(0, -1).map(([, meaning]) => meaning),
    shown: shown.join(' ').trim(),
  }
}

const wordsOf = async (line: string, user?: World) => (await complete(line, user)).words

const globalFlags = [
  ...['--store', '--output', '--timeout', '--ca-cert', '--allow-http'],
  ...['--verbose', '--quiet', '--no-input', '--color', '--no-color'],
]

test('every command is completed with its subcommands and options', async () => {
  for (const command of treeOf(program).filter((each) => each.name() !== 'help')) {
    const start = `${namesOf(command).join(' ')} `.trimStart()
    const listed = command.options.filter((option) => !(option instanceof OtherFlags))
    const own = listed.flatMap(({ long }) => long ?? [])
    expect(own).toEqual(expect.arrayContaining(globalFlags))
    expect(await wordsOf(`${start}-`)).toEqual([...own, '--help'])
    const below = command.commands.map((each) => each.name())
    if (below.length > 0) expect(await wordsOf(start)).toEqual(below)
    expect((await new World().run([...namesOf(command), '--help'])).out).not.toContain('__complete')
  }
  const { words, meanings } = await complete('')
  expect(meanings[words.indexOf('create')]).toBe('create a plant')
})

const ofStores = 'add set init list use remove'
const addresses = 'local FILES'
const formats = outputFormats.join(' ')

test.each([
  ['help ', [...commandNames, ...Object.keys(topics)].join(' ')],
  ['--verbose stores ', ofStores],
  // Values of options
  ['import --if-exists ', 'error skip same update'],
  ['import --match ', 'name'],
  ['list --output=te', `--output=|${formats}`],
  ['list --color=', '--color=|auto always never'],
  // Files
  ['create --file=fe', '--file=| FILES'],
  ...each('FILES', 'create -f ', 'import a.ndjson b', 'backup ', 'export ', 'export --yes a'),
  ['--store ', addresses],
  // What people must know, and what cannot follow
  ...each(
    '',
    'get ',
    'create --name --',
    'create -- --',
    'crate ',
    'create f',
    '--verbose=',
    '--store https:',
  ),
])('"%s": %s', async (line, expected) => {
  const user = new World()
  expect((await complete(line, user)).shown).toBe(expected)
  expect(user.has('config')).toBe(false)
})

function each(expected: string, ...lines: string[]): [string, string][] {
  return lines.map((line) => [line, expected])
}

describe('what a store has', () => {
  const plants = [
    ...[
      '{"id":1,"name":"Fern","tag":"shade"}',
      '{"id":12,"name":"Moss","tag":"Kräuter"}',
      '{"id":-3,"name":"Ivy"}',
    ],
    ...[
      '{"id":13,"name":"Oak","tag":"two words"}',
      '{"id":14,"name":"Elm","tag":"$(id)"}',
      '{"id":15,"name":"E","tag":"shade"}',
    ],
  ]

  async function gardener(store: string) {
    const user = new World()
    await user.run(`import - --store ${store}`, { stdin: plants.join('\n') })
    return user
  }

  test('is offered: tags and ids that need no quotes, of the store that the line names', async () => {
    const user = await gardener('local')
    for (const line of ['list --tag ', 'count -t ', 'update 1 --tag '])
      expect(await wordsOf(line, user)).toEqual(['shade', 'Kräuter'])
    expect((await complete('list --tag=sh', user)).shown).toBe('--tag=|shade')
    const ids = await complete('get 1', user)
    expect([ids.words, ids.meanings]).toEqual([
      ['1', '12', '13', '14', '15'],
      ['Fern', 'Moss', 'Oak', 'Elm', 'E'],
    ])
    expect(await wordsOf('delete 1 15', user)).toEqual(['15'])
    const other = await gardener('./other.db')
    for (const line of [
      '-s ./other.db get 12',
      'get --store=./other.db 12',
      'get -s./other.db 12',
      'get -s=./other.db 12',
    ])
      expect(await wordsOf(line, other)).toEqual(['12'])
    expect(other.has('data')).toBe(false)
  })

  test('is offered up to a hundred words', async () => {
    const user = new World()
    const many = Array.from({ length: 250 }, (_, id) => `{"id":${id},"name":"F","tag":"t${id}"}`)
    await user.run('import', { stdin: many.join('\n') })
    for (const line of ['get ', 'list --tag ']) expect(await wordsOf(line, user)).toHaveLength(100)
  })

  test('is offered unless it is long, and looked up for half a second only', async () => {
    const user = new World()
    const tags = ['a'.repeat(100), 'b'.repeat(101), ...Array.from({ length: 1500 }, () => 'c'), 'd']
    const plants = tags.map((tag, id) => JSON.stringify({ id, name: 'F', tag }))
    await user.run('import', { stdin: plants.join('\n') })
    expect(await wordsOf('list --tag ', user)).toEqual(['a'.repeat(100), 'c', 'd'])
    let time = 0
    const { words } = await complete('list --tag ', user, { now: () => (time += 400) })
    expect(words).toContain('c')
    expect(words).not.toContain('d')
  })

  test('is not looked up where it is not a file, or cannot be read', async () => {
    const user = new World()
    user.write('none.txt', 'water the fern')
    for (const store of [
      'http://127.0.0.1:9',
      'postgres://me@127.0.0.1:9/a',
      './none.txt',
      './gone.db',
      'gone',
    ])
      expect(await wordsOf(`get --store ${store} `, user), store).toEqual([])
    expect(user.has('gone.db')).toBe(false)
  })
})

describe('saved stores', () => {
  const address = 'https://plants.example.com/v1'
  const stores = { garden: { address: '/srv/garden.db' }, team: { address } }
  const tokens = { [address]: { token: 's3cret-token', savedAt: '2026-01-02T03:04:05Z' } }

  test('are offered by name, with their address', async () => {
    const user = new World({ stores, tokens })
    const saved = ['garden', 'team']
    const meanings = ['/srv/garden.db', address, 'your own store, which is built in']
    for (const line of ['--store ', 'stores use ', 'stores remove '])
      expect(await complete(line, user)).toMatchObject({ words: [...saved, 'local'], meanings })
    await complete('auth token --store ', user) // which fails by itself when it shows a token
  })

  test('can neither control a terminal nor add a line, and show no password', async () => {
    const hostile = {
      bad: { address: './a\u001b[2J\tb\nc\u202e' },
      secret: { address: 'https://me:s3cret@x.example' },
    }
    const unnamed = {
      'a b': { address: '/x' },
      "'$(id)": { address: '/x' },
      'tab\t': { address: '/x' },
    }
    expect(
      await complete('stores remove ', new World({ stores: { ...hostile, ...unnamed } })),
    ).toMatchObject({
      words: ['bad', 'secret', 'local'],
      meanings: [
        './a\\u{1b}[2J\\u{9}b\\u{a}c\\u{202e}',
        '***',
        'your own store, which is built in',
      ],
    })
  })
})

test('settings that are broken or cannot be read, and wrong variables, only mean fewer words', async () => {
  const user = new World()
  user.save('{"version":1,')
  expect((await complete('--store ', user)).shown).toBe(addresses)
  rmSync(user.file)
  mkdirSync(user.file)
  const env = {
    PLANTS_OUTPUT: 'xml',
    PLANTS_STORE: 'http://',
    PLANTS_TIMEOUT: 'soon',
    PLANTS_TOKEN: '\n',
  }
  expect((await complete('--store ', user, { env })).shown).toBe(addresses)
  expect((await complete('--output ', user, { env })).shown).toBe(formats)
})

function namesOf(command: Command): string[] {
  return command.parent ? [...namesOf(command.parent), command.name()] : []
}

test('PowerShell, which drops an empty word and two dashes, puts a dot before each word', async () => {
  const user = new World()
  expect(await user.run('__complete . .stores .')).toEqual(
    await user.run(['__complete', '--', 'stores', '']),
  )
  expect((await user.run('__complete . .create .-- .')).out).toBe('none\t\n')
})

test('the script for PowerShell registers a completion of plants, and closes what it opens', async () => {
  const { out } = await new World().run('completion powershell')
  expect(out).toContain('Register-ArgumentCompleter -Native -CommandName plants -ScriptBlock {')
  const open = [...out.replaceAll(/'[^'\n]*'|"[^"\n]*"/g, '')]
    .filter((character) => /[{}()[\]]/.test(character))
    .join('')
  let rest = open
  for (let before = ''; rest !== before; )
    [before, rest] = [rest, rest.replaceAll(/\{\}|\(\)|\[\]/g, '')]
  expect(rest).toBe('')
})
