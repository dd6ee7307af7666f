import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { topics } from '../../../src/cli/commands/index.js'
import { habits } from '../../../src/cli/program/usage.js'
import { commandAt, program, treeOf } from '../../helpers/helps.js'
import { refused } from '../../helpers/refusals.js'
import { refusal, World } from '../../helpers/world.js'

const all = treeOf(program.root)
const flagsOf = ({ options }: Pick<Command, 'options'>) => options.flatMap(({ short, long }) => [short, long])

describe('the table of habits', () => {
  /** The commands in a hint, and the options that stand alone. */
  const formsIn = (hint: string) =>
    /^[A-Z]/.test(hint) ? [...hint.matchAll(/(?<=: plants )[^.|]*\b|--[a-z-]+/g)].map(([form]) => form) : [hint]
  const forms = Object.keys(habits).flatMap(formsIn)

  test('has commands and options', () => {
    expect(forms).toEqual(expect.arrayContaining(['count', '--yes', 'get ID', 'config set SETTING VALUE', '--out']))
  })

  test.each(forms)('means what there is: %s', (meant) => {
    const words = meant.split(' ').filter((word) => /^[a-z-]+$/.test(word))
    const option = words.find((word) => word.startsWith('--'))
    const names = words.filter((word, at) => !word.startsWith('-') && !words[at - 1]?.startsWith('-'))
    if (names[0] === 'help') return expect(['help', ...Object.keys(topics)]).toContain(names.at(-1))
    const commands = names.length === 0 ? all : [commandAt(names) ?? program.root]
    expect(commands[0]).not.toBe(names.length === 0 ? undefined : program.root)
    if (option) expect(['--help', ...commands.flatMap(flagsOf)]).toContain(option)
  })

  test('has no word that already does something', () => {
    const commands = Object.values(habits)
      .flat()
      .filter((habit) => !habit.includes('-'))
    expect(commands.filter((habit) => commandAt(habit.split(' ')))).toEqual([])
    const options = Object.entries(habits).filter(([meant]) => meant.startsWith('-'))
    const wrong = options.flatMap(([meant, words]) =>
      all
        .filter((command) => flagsOf(command).includes(meant.split(' ')[0]))
        .flatMap((command) => words.filter((word) => flagsOf(command).includes(word))),
    )
    expect(wrong).toEqual(['--format']) // of the input of import, which has --output, too
  })
})

test('an example fits a terminal of 80 columns', () => {
  const examples = [...program.definitions.values()].flatMap((definition) => definition.examples ?? [])
  expect(examples.filter((line) => `  ${line}`.length > 80)).toEqual([])
})

test.each([
  ['rm', 'delete'],
  ['remove', 'delete'],
  ['store delete', 'stores remove'],
  ['stores rm', 'stores remove'],
  ['token rm', 'tokens revoke'],
  ['tokens delete', 'tokens revoke'],
  ['tokens remove', 'tokens revoke'],
  ['setting remove', 'config unset'],
  ['settings rm', 'config unset'],
  ['config delete', 'config unset'],
  ['auth remove', 'auth logout'],
])('%s is another name for %s', (words, name) => {
  expect(commandAt(words.split(' '))).toBe(commandAt(name.split(' ')))
})

test.each([
  ['search', 'Did you mean: plants list --search TEXT'],
  ['edit 1', 'Did you mean: plants update ID --name TEXT'],
  ['login', 'Did you mean: plants auth login'],
  ['LIST', 'Did you mean list?'],
  ['SEARCH', 'Did you mean: plants list --search TEXT'],
  ['enviroment', 'Did you mean: plants help environment'],
  ['help enviroment', 'Did you mean: plants help environment'],
  ['help exit_codes', 'Did you mean: plants help exit-codes'],
  ['help stores ad', 'Did you mean add?'],
  ['stores create', 'Did you mean: plants stores add NAME ADDRESS'],
  ['search sword fern', 'Did you mean: plants list --search TEXT'],
  ['rename 1 Moss', 'Did you mean: plants update ID --name TEXT'],
  ['rename 1 --name Moss', 'Did you mean: plants update ID --name TEXT'],
  ['load a.csv b.csv', 'Did you mean: plants import FILE'],
  ['list --out x.csv', 'Did you mean: plants export --out FILE'],
  ['get --id=1', 'The id is an argument: plants get ID'],
  ['show -id 1', 'The id is an argument: plants get ID'],
  ['update -i 1 --name Moss', 'The id is an argument, and cannot be changed: plants update ID --name TEXT'],
  ['create -id 1', 'Did you mean --id?'],
  ['delete 1 -yes', 'Did you mean --yes?'],
  ['create -i 1 -name Fern', 'Did you mean --name?'],
  ['list -n 5', 'For a number of plants: --limit. For a text: --search'],
  ['list -nFern', 'For a number of plants: --limit. For a text: --search'],
  ['export --csv', 'Did you mean --output csv?'],
  ['export -f csv', 'For a format: --output. For a file: --out'],
  ['export --json', 'Did you mean --output json?'],
  ['list --json', 'Did you mean --output json?'],
  ['list -j', 'Did you mean --output json?'],
  ['--sort name list', 'The options of a command follow it. See: plants list --help'],
  ['list --sort', 'See: plants list --help'],
  ['list --max', 'Did you mean --limit?'],
  ['delete 1 --force', 'Did you mean --yes?'],
  ['restore plants.bak -f', 'Did you mean --yes?'],
  ['import plants.csv --force', 'See: plants import --help'],
  ['import plants.csv --upsert', 'Did you mean --if-exists update?'],
  ['export --force', 'See: plants export --help'],
  ['import --sep ,', 'See: plants import --help'],
  ['import --check', 'Did you mean --dry-run?'],
  ['create --check', 'Did you mean --dry-run?'],
  ['ls --db x', 'Did you mean --store?'],
  ['stores current', 'Did you mean: plants stores list'],
  ['feedback', 'Did you mean: plants help'],
  ['list --count', 'Did you mean: plants count'],
  ['tags', 'Did you mean: plants count --by tag'],
  ['duplicates', 'Did you mean: plants count --by name --min 2'],
  ['restart', 'Did you mean restore?'],
  ['date 1', 'Did you mean update?'],
  ['udpate 1', 'Did you mean update?'],
  ['rstore', 'Did you mean restore?'],
  ['dele 1', 'Did you mean delete?'],
  ['delet 1', 'Did you mean delete?'],
  ...['create help', 'create 5 Rose', 'create 5 --name Rose', 'create {"id":1} -q'].map((line): [string, string] => [
    line,
    'Its fields are options, and a text with spaces is in quotes: plants create --id ID --name "TEXT"',
  ]),
  ['update 1 name=x', 'What changes is an option, and a text with spaces is in quotes: plants update ID --name "TEXT"'],
  [
    'update 1 -name x',
    'What changes is an option, and a text with spaces is in quotes: plants update ID --name "TEXT"',
  ],
  ['completion', 'Usage: plants completion <shell>. See: plants completion --help'],
  ['stores rename x', 'Usage: plants stores rename <name> <new-name>. See: plants stores rename --help'],
])('plants %s: %s', async (argv, hint) => {
  expect((await refused({ argv })).err).toMatch(new RegExp(`\\n  ${hint.replace(/[?.{}|[\]]/g, '\\$&')}\\n$`))
})

const fern = '{"id":1,"name":"Fern"}\n'
const ivy = '{"id":1,"name":"Ivy"}\n'

/**
 * Command lines, and their message and hint. Of a hint with a command: the command, with words in place of capitals,
 * and what it prints.
 */
const pasted: [line: string, message: string, hint: string, command?: string, out?: unknown][] = [
  [
    'update --search o --tag x',
    'Unknown option --search',
    'For plants that match: plants list --search TEXT | plants update - --tag TEXT',
    'list --search o',
    '{"id":2,"name":"Moss","tag":"wet"}\n',
  ],
  [
    'update 1 --id 5',
    'Unknown option --id',
    'The id is an argument, and cannot be changed: plants update ID --name TEXT',
    'update 1 --name Ivy',
    ivy,
  ],
  ...['put', 'patch', 'modify'].map((word): (typeof pasted)[number] => [
    `${word} 1 name=x`,
    `Unknown command ${word}`,
    'Did you mean: plants update ID --name TEXT',
    'update 1 --name Ivy',
    ivy,
  ]),
  [
    'set 1 name=x',
    'Unknown command set',
    'For a plant: plants update ID --name TEXT. For a setting: plants config set SETTING VALUE',
    'update 1 --name Ivy',
    ivy,
  ],
  [
    'set timeout 5s',
    'Unknown command set',
    'For a plant: plants update ID --name TEXT. For a setting: plants config set SETTING VALUE',
    'config set timeout 5s',
    expect.stringContaining('"timeout"'),
  ],
  ...['serve 8080', 'serve -p 8080'].map((line): (typeof pasted)[number] => [
    line,
    line.includes('-p') ? 'Unknown option -p' : 'serve takes no arguments, but got 1',
    'Did you mean: plants serve --port PORT',
    'serve --port 0',
    expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\n$/),
  ]),
  ['list 1 2', 'list takes no arguments, but got 2', 'For plants by their ids: plants get ID', 'get 1', fern],
  ...['--input', '-f', '--file'].map((option): (typeof pasted)[number] => [
    `import ${option} more.csv`,
    `Unknown option ${option}`,
    'Name the files without an option: plants import FILE',
    'import more.csv',
    expect.stringContaining('"created":1'),
  ]),
  ['list --reverse', 'Unknown option --reverse', 'Did you mean --desc?'],
  ['get 1 --format csv', 'Unknown option --format', 'Did you mean --output?'],
  [
    'list --jq .name',
    'Unknown option --jq',
    'Pipe JSON to jq, for example: plants list | jq .name',
    'list',
    `${fern}{"id":2,"name":"Moss","tag":"wet"}\n`,
  ],
  ...['--if-exists skip', '--upsert'].map((option): (typeof pasted)[number] => [
    `create ${option}`,
    `Unknown option ${option.replace(' skip', '')}`,
    'To skip or update a plant that exists, import it from stdin. See: plants import --help',
    'import --help',
    expect.stringContaining('--if-exists <what>'),
  ]),
]

test.each(pasted)('what is suggested does what was meant: plants %s', async (line, message, hint, command, out) => {
  const user = new World()
  for (const plant of ['--id 1 --name Fern', '--id 2 --name Moss --tag wet']) await user.run(`create ${plant}`)
  writeFileSync(join(user.home, 'edited.csv'), 'id,name,tag\n1,Fern,x\n2,Moss,x\n')
  writeFileSync(join(user.home, 'more.csv'), 'id,name\n3,Ivy\n')
  expect(await user.run(line)).toEqual(refusal(message, hint))
  const forms = [...hint.matchAll(/(?<=: plants )[^.|]*[^.| ]/g)].map(([form]) => form.replace(/[A-Z]{2,}/g, '\\S+'))
  const isSuggested = (words: string) => forms.some((form) => new RegExp(`^${form}$`).test(words))
  expect(command !== undefined && isSuggested(command)).toBe(command !== undefined)
  if (command === undefined) return
  const env = { PLANTS_SERVE_TOKEN: 'a-token-of-sixteen-letters' }
  const signal = command.startsWith('serve') ? AbortSignal.abort() : new AbortController().signal
  expect(await user.run(command, { env, signal })).toMatchObject({ code: 0, out })
})
