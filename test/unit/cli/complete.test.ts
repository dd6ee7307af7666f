import { mkdirSync, rmSync } from 'node:fs'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { wordsIn } from '../../../src/cli/commands/completion.js'
import { outputFormats } from '../../../src/config/option-values.js'
import { commandNames, program, treeOf } from '../../helpers/documents.js'
import type { RunOptions } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

/** The completions of a line, which begins after the name of the program. */
async function complete(line: string, user = new World(), options?: RunOptions) {
  const { code, out, err } = await user.run(['__complete', 'zsh', `plants ${line}`], options)
  expect({ line, code, err }).toEqual({ line, code: 0, err: '' })
  const candidates = out.split('\n').slice(0, -1)
  return {
    words: candidates.map((each) => each.split('\t')[0] ?? ''),
    meanings: candidates.map((each) => each.split('\t')[1]),
  }
}

const wordsOf = async (line: string, user?: World) => (await complete(line, user)).words

const globalFlags = [
  ...['--store', '--output', '--timeout', '--ca-cert', '--allow-http'],
  ...['--verbose', '--quiet', '--no-input', '--no-color'],
]

test('every command is completed with its subcommands and options', async () => {
  for (const command of treeOf(program).filter((each) => each.name() !== 'help')) {
    const start = `${namesOf(command).join(' ')} `.trimStart()
    const own = command.options.flatMap(({ long }) => long ?? [])
    expect(own).toEqual(expect.arrayContaining(globalFlags))
    expect(await wordsOf(`${start}-`)).toEqual([...own, '--help'])
    const below = command.commands.map((each) => each.name())
    if (below.length > 0) expect(await wordsOf(start)).toEqual(below)
    expect((await new World().run([...namesOf(command), '--help'])).out).not.toContain('__complete')
  }
  const { words, meanings } = await complete('')
  expect(meanings[words.indexOf('create')]).toBe('create a plant')
})

test.each([
  ['help ', [...commandNames, 'help']],
  ['--verbose stores ', ['add', 'init', 'list', 'use', 'remove']],
  // Values of options
  ['import --if-exists s', ['skip', 'same']],
  ['import --match ', ['name']],
  ['list --output=te', ['--output=text']],
  ['list --output ', outputFormats],
  ['--store ', ['local']],
  // Files, which the shell offers, what people must know, and what cannot follow
  ...['create -f ', 'create --file=fe', 'import a.ndjson b', 'export ', 'get ', 'crate '].map(
    nothing,
  ),
  ...['create --name --', 'create -- --', 'create f', '--verbose=', '--store https:'].map(nothing),
])('"%s": %j', async (line, expected) => {
  const user = new World()
  expect((await complete(line, user)).words).toEqual(expected)
  expect(user.has('config')).toBe(false)
})

function nothing(line: string): [string, string[]] {
  return [line, []]
}

test.each([
  ['', ['']],
  ['plants list ', ['plants', 'list', '']],
  ['plants  list --tag "a b', ['plants', 'list', '--tag', 'a b']],
  ["plants create --name 'it is' -", ['plants', 'create', '--name', 'it is', '-']],
  ['plants create --name a\\ b\\ ', ['plants', 'create', '--name', 'a b ']],
  ['plants --output=json', ['plants', '--output=json']],
])('the words of %j', (line, words) => {
  expect(wordsIn(line)).toEqual(words)
})

test('bash gets what comes after the character at which it ends a word', async () => {
  const forBash = async (line: string) =>
    (await new World().run(['__complete', 'bash', line])).out.trim().split('\n')
  expect(await forBash('plants list --output=te')).toEqual(['text'])
  expect(await forBash('plants list --output te')).toEqual(['text'])
})

describe('saved stores', () => {
  const address = 'https://plants.example.com/v1'
  const stores = { garden: { address: '/srv/garden.db' }, team: { address } }
  const tokens = { [address]: { token: 's3cret-token', savedAt: '2026-01-02T03:04:05Z' } }

  test('are offered by name', async () => {
    const user = new World({ stores, tokens })
    const saved = ['garden', 'team']
    const meanings = ['a saved store', 'a saved store', 'your own store, which is built in']
    for (const line of ['--store ', 'stores use ', 'stores remove '])
      expect(await complete(line, user)).toMatchObject({ words: [...saved, 'local'], meanings })
    await complete('auth token --store ', user) // which fails by itself when it shows a token
  })

  test('are left out if a shell could read their name', async () => {
    const unnamed = {
      'a b': { address: '/x' },
      "'$(id)": { address: '/x' },
      'tab\t': { address: '/x' },
    }
    expect(await wordsOf('stores remove ', new World({ stores: unnamed }))).toEqual(['local'])
  })
})

test('settings that are broken or cannot be read, and wrong variables, only mean fewer words', async () => {
  const user = new World()
  user.save('{"version":1,')
  expect(await wordsOf('--store ', user)).toEqual(['local'])
  rmSync(user.file)
  mkdirSync(user.file)
  const env = {
    PLANTS_OUTPUT: 'xml',
    PLANTS_STORE: 'http://',
    PLANTS_TIMEOUT: 'soon',
    PLANTS_TOKEN: '\n',
  }
  expect((await complete('--store ', user, { env })).words).toEqual(['local'])
  expect((await complete('--output ', user, { env })).words).toEqual(outputFormats)
})

function namesOf(command: Command): string[] {
  return command.parent ? [...namesOf(command.parent), command.name()] : []
}

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
