import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { topics } from '../../../src/cli/commands/index.js'
import { habits } from '../../../src/cli/program/usage.js'
import { commandAt, program, treeOf } from '../../helpers/helps.js'
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
    const words = Object.values(habits).flat()
    expect(words.filter((word) => !word.includes('-') && commandAt(word.split(' ')))).toEqual([])
    const options = Object.entries(habits).filter(([meant]) => meant.startsWith('-'))
    const wrong = options.flatMap(([meant, others]) =>
      all
        .filter((command) => flagsOf(command).includes(meant.split(' ')[0]))
        .flatMap((command) => others.filter((word) => flagsOf(command).includes(word))),
    )
    expect(wrong).toEqual(['--format']) // of the input of import, which has --output, too
  })
})

// A hint is a sentence, a command, or another word. Without one it is where the help of the command is.
test.each<[line: string, hint: string, command?: string]>([
  ['search', 'plants list --search TEXT'],
  ['list --out x.csv', 'plants export --out FILE'],
  // Typing errors
  ['LIST', 'list'],
  ['udpate 1', 'update'],
  ['date 1', 'update'],
  ['enviroment', 'plants help environment'],
  ['help stores ad', 'add'],
  // What removes something is only for who began to write it
  ['dele 1', 'delete'],
  ['elete 1', '', ''],
  ['stores remote team', 'remove'],
  ['config onset timeout', '', 'config '],
  ['tokens invoke 1', '', 'tokens '],
  ['auth layout', '', 'auth '],
  // Nor what weakens security
  ['list --no-allow-http', ''],
  // Options
  ['get --id=1', 'The id is an argument: plants get ID'],
  ['list -nFern', 'For a number of plants: --limit. For a text: --search'],
  ['list -j', '--output json'],
  // Only where the command has the option
  ['delete 1 --force', '--yes'],
  ['import plants.csv --force', ''],
  ['import plants.csv --upsert', '--if-exists update'],
  // With one dash
  ['delete 1 -yes', '--yes'],
  ['create -i 1 -name Fern', '--name'],
])('plants %s: %s', async (line, hint, command = `${line.split(' ')[0]} `) => {
  const guess = hint.startsWith('plants ') ? `Did you mean: ${hint}` : `Did you mean ${hint}?`
  const sentence = /^[A-Z]/.test(hint) ? hint : guess
  const { code, err } = await new World().run(line)
  expect([code, err.split('\n')[1]]).toEqual([2, `  ${hint === '' ? `See: plants ${command}--help` : sentence}`])
})

const moss = '{"id":2,"name":"Moss","tag":"wet"}\n'
const either = 'For a plant: plants update ID --name TEXT. For a setting: plants config set SETTING VALUE'
const served = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\n$/)
const ifExists = 'To skip or update a plant that exists, import it from stdin. See: plants import --help'

// The message, the hint, and one of its commands, with words in place of capitals, and what that prints.
test.each<[line: string, message: string, hint: string, command: string, out: unknown]>([
  [
    'update --search o --tag x',
    'Unknown option --search',
    'For plants that match: plants list --search TEXT | plants update - --tag TEXT',
    'list --search o',
    moss,
  ],
  ['set timeout 5s', 'Unknown command set', either, 'config set timeout 5s', expect.stringContaining('"timeout"')],
  ['serve -p 8080', 'Unknown option -p', 'Did you mean: plants serve --port PORT', 'serve --port 0', served],
  [
    'create --upsert',
    'Unknown option --upsert',
    ifExists,
    'import --help',
    expect.stringContaining('--if-exists <what>'),
  ],
])('what is suggested does what was meant: plants %s', async (line, message, hint, command, out) => {
  const user = new World()
  for (const plant of ['--id 1 --name Fern', '--id 2 --name Moss --tag wet']) await user.run(`create ${plant}`)
  expect(await user.run(line)).toEqual(refusal(message, hint))
  const forms = [...hint.matchAll(/(?<=: plants )[^.|]*[^.| ]/g)].map(([form]) => form.replace(/[A-Z]{2,}/g, '\\S+'))
  expect(forms.filter((form) => new RegExp(`^${form}$`).test(command))).not.toEqual([])
  const env = { PLANTS_SERVE_TOKEN: 'a-token-of-sixteen-letters' }
  const signal = command.startsWith('serve') ? AbortSignal.abort() : new AbortController().signal
  expect(await user.run(command, { env, signal })).toMatchObject({ code: 0, out })
})
