import { describe, expect, test } from 'vitest'
import { splitWords } from '../../../src/cli/commands/completion.js'
import { listTopics } from '../../../src/cli/topics.js'
import { outputFormats } from '../../../src/config/option-values.js'
import {
  commandNames,
  getCommandPath,
  listCommands,
  program,
} from '../../helpers/expect/documents.js'
import type { RunOptions } from '../../helpers/sandbox/run.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { buildSavedTokens } from '../../helpers/sandbox/token-command-sandbox.js'

/** The completions of a line, which begins after the name of the program, and their meanings. */
async function complete(line: string, user = new Sandbox(), options?: RunOptions) {
  const { code, out, err } = await user.run(['__complete', 'zsh', `plants ${line}`], options)
  expect({ line, code, err }).toEqual({ line, code: 0, err: '' })
  const candidates = out.split('\n').slice(0, -1)
  return new Map(
    candidates.map((each): [string, string] => {
      const [word = '', meaning = ''] = each.split('\t')
      return [word, meaning]
    }),
  )
}

const wordsOf = async (line: string, user?: Sandbox, options?: RunOptions) => [
  ...(await complete(line, user, options)).keys(),
]

test('the completion of every command has its subcommands and options', async () => {
  const global = '--store --output --timeout --ca-cert --allow-http --verbose --quiet --no-input'
  for (const command of listCommands(program).filter((each) => each.name() !== 'help')) {
    const start = `${getCommandPath(command).join(' ')} `.trimStart()
    const own = command.options.flatMap(({ long }) => long ?? [])
    expect(own).toEqual(expect.arrayContaining(`${global} --no-color`.split(' ')))
    expect(await wordsOf(`${start}-`)).toEqual([...own, '--help'])
    const below = command.commands.map((each) => each.name())
    if (below.length > 0) expect(await wordsOf(start)).toEqual(below)
    expect((await new Sandbox().run([...getCommandPath(command), '--help'])).out).not.toContain(
      '__complete',
    )
  }
  expect((await complete('')).get('create')).toBe('create a plant')
})

const topics = listTopics().map(([topic]) => topic)

/** Here, the shell offers files. */
const files = [
  ...['create -f ', 'create --file=fe', 'import a.ndjson b', 'export ', 'create -- --'],
  ...['--store https:', '--ca-cert ', 'import --rejects ', 'backup ', 'config set ca-cert '],
  ...['serve --tls-key ', 'stores add garden po'],
]

/** Here, people must know what follows, or nothing can. */
const noFiles = [
  ...['get ', 'get 1 ', 'crate ', 'create --name --', 'create f', 'list --tag '],
  ...['update 1 --name ', 'config set timeout ', 'list --output x', 'stores add '],
  ...[
    'serve --allow x',
    'create --id ',
    'tokens revoke ',
    'list --limit ',
    'import --sheet ',
    'list --x',
  ],
]

test.each<[line: string, words: string[]]>([
  ['help ', [...commandNames, 'help', ...topics]],
  ['--verbose stores ', ['add', 'init', 'list', 'use', 'remove']],
  // Values of options
  ['import --if-exists s', ['same', 'skip']],
  ['list --output ', [...outputFormats]],
  ['--store ', ['local']],
  // Values of settings
  ['config set output te', ['text']],
  ['config set store ', ['local']],
  ...files.map((line): [string, string[]] => [line, []]),
  ...noFiles.map((line): [string, string[]] => [line, [':']]),
])('the words that complete "plants %s" are %j', async (line, expected) => {
  const user = new Sandbox()
  expect(await wordsOf(line, user)).toEqual(expected)
  expect(user.has('config')).toBe(false)
})

test.each([
  { line: '', words: [''] },
  { line: 'plants list ', words: ['plants', 'list', ''] },
  { line: 'plants  list --tag "a b', words: ['plants', 'list', '--tag', 'a b'] },
  { line: "plants create --name 'it is' -", words: ['plants', 'create', '--name', 'it is', '-'] },
  { line: 'plants create --name a\\ b\\ ', words: ['plants', 'create', '--name', 'a b '] },
])('the words of the line $line are $words', ({ line, words }) => {
  expect(splitWords(line)).toEqual(words)
})

describe('saved stores', () => {
  const address = 'https://plants.example.com/v1'

  test('are offered by name', async () => {
    const stores = { garden: { address: '/srv/garden.db' }, team: { address } }
    const user = new Sandbox({ stores, tokens: buildSavedTokens(address) })
    for (const line of ['--store ', 'stores use ', 'stores remove '])
      expect(await wordsOf(line, user)).toEqual(['garden', 'team', 'local'])
    await complete('auth token --store ', user) // which fails by itself when it shows a token
  })

  test('are not offered if a shell could misread their name', async () => {
    const names = ['a b', "'$(id)", 'tab\t']
    const stores = Object.fromEntries(names.map((name) => [name, { address: '/x' }]))
    expect(await wordsOf('stores remove ', new Sandbox({ stores }))).toEqual(['local'])
  })
})

test('the script for PowerShell registers a completion of plants, and closes what it opens', async () => {
  const { out } = await new Sandbox().run('completion powershell')
  expect(out).toContain('Register-ArgumentCompleter -Native -CommandName plants -ScriptBlock {')
  let rest = out.replaceAll(/'[^'\n]*'|"[^"\n]*"|[^{}()[\]]/g, '')
  for (let before = ''; rest !== before; )
    [before, rest] = [rest, rest.replaceAll(/\{\}|\(\)|\[\]/g, '')]
  expect(rest).toBe('')
})
