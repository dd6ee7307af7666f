import { describe, expect, test } from 'vitest'
import { loadCommands, plants } from '../../../src/cli/commands/index.js'
import { type CommandDefinition, commandFor, globalOptions } from '../../../src/cli/define-command.js'
import { habits, optionForArgument } from '../../../src/cli/program/usage.js'
import { commandAt } from '../../helpers/helps.js'
import { refused } from '../../helpers/refusals.js'

await loadCommands(plants.commands.map(({ name }) => name))

const all = (command: CommandDefinition): CommandDefinition[] => [command, ...(command.commands ?? []).flatMap(all)]
const namesOf = ({ options = [] }: Pick<CommandDefinition, 'options'>) =>
  options.flatMap(({ flags }) => flags.replace(/ <.*/, '').split(', '))
const globalNames = namesOf({ options: globalOptions })

describe('the table of habits', () => {
  test.each(Object.keys(habits))('means what there is: %s', (meant) => {
    const words = meant.split(' ').filter((word) => /^[a-z-]+$/.test(word))
    const option = words.find((word) => word.startsWith('--'))
    const names = words.filter((word, at) => !word.startsWith('-') && !words[at - 1]?.startsWith('-'))
    if (names[0] === 'help') return expect(['help', ...(plants.topics ?? []).map(({ name }) => name)]).toContain(names.at(-1))
    const commands = names.length === 0 ? all(plants) : [commandAt(names) ?? plants]
    expect(commands[0]).not.toBe(names.length === 0 ? undefined : plants)
    if (option) expect([...globalNames, ...commands.flatMap(namesOf)]).toContain(option)
  })

  test('has no word that already does something', () => {
    const commands = Object.values(habits)
      .flat()
      .filter((habit) => !habit.includes('-'))
    expect(commands.filter((habit) => commandAt(habit.split(' ')))).toEqual([])
    const options = Object.entries(habits).filter(([meant]) => meant.startsWith('-'))
    const wrong = options.flatMap(([meant, words]) =>
      all(plants)
        .filter((command) => namesOf(command).includes(meant.split(' ')[0] ?? ''))
        .flatMap((command) => words.filter((word) => globalNames.includes(word) && namesOf(command).includes(word))),
    )
    expect(wrong).toEqual([])
  })

  test('of arguments names options of their commands', () => {
    for (const [path, option] of Object.entries(optionForArgument)) {
      const command = commandAt(path.split(' ')) ?? plants
      expect({ path, known: [...namesOf(command), ...globalNames].includes(option) }).toEqual({ path, known: true })
    }
  })
})

test('an example fits a terminal of 80 columns', () => {
  expect(all(plants).flatMap(({ examples = [] }) => examples.filter((line) => `  ${line}`.length > 80))).toEqual([])
})

test('an alias is a name that its own level does not have', () => {
  for (const { commands = [] } of all(plants)) for (const { name } of commands) expect(commandFor(name, commands)?.name).toBe(name)
})

test.each([
  ['search', 'Did you mean: plants list --search TEXT'],
  ['edit 1', 'Did you mean: plants update 1 --name TEXT'],
  ['login', 'Did you mean: plants auth login'],
  ['LIST', 'Did you mean list?'],
  ['SEARCH', 'Did you mean: plants list --search TEXT'],
  ['enviroment', 'Did you mean: plants help environment'],
  ['help enviroment', 'Did you mean: plants help environment'],
  ['help exit_codes', 'Did you mean: plants help exit-codes'],
  ['help stores ad', 'Did you mean add?'],
  ['stores create', 'Did you mean: plants stores add NAME ADDRESS'],
  ['tokens rm 1', 'Did you mean: plants tokens revoke 1'],
  ['search sword fern', "Did you mean: plants list --search 'sword fern'"],
  ['remove 1 2', 'Did you mean: plants delete 1 2'],
  ['remove Fern', 'Did you mean: plants delete ID'],
  ['rename 1 Moss', 'Did you mean: plants update 1 --name Moss'],
  ['rename 1 --name Moss', 'Did you mean: plants update ID --name TEXT'],
  ['load a.csv b.csv', 'Did you mean: plants import a.csv b.csv'],
  ['list --out x.csv', 'Did you mean: plants export --out x.csv'],
  ['get --id 1', 'Did you mean: plants get 1'],
  ['get --id=1', 'Did you mean: plants get 1'],
  ['get -i 1', 'Did you mean: plants get 1'],
  ['show -id 1', 'Did you mean: plants show 1'],
  ['update -i 1 --name Moss', 'Did you mean: plants update 1 --name Moss'],
  ['get --id 1 --secret s', 'See: plants get --help'],
  ['create -id 1', 'Did you mean --id 1?'],
  ['create -i 1 -name=Fern', 'Did you mean --name=Fern?'],
  ['delete 1 -yes', 'Did you mean --yes?'],
  ['list -n 5', 'Did you mean --limit 5?'],
  ['list -n5', 'Did you mean --limit 5?'],
  ['list -n Fern', 'Did you mean --search?'],
  ['export --csv', 'Did you mean --format csv?'],
  ['export -f csv', 'Did you mean --format csv?'],
  ['export -f plants.csv', 'Did you mean --out?'],
  ['export --json', 'Did you mean --format json?'],
  ['list --json', 'Did you mean --output json?'],
  ['list -j', 'Did you mean --output json?'],
  ['--format json list', 'Write it after the command: plants list --format'],
  ['get 1 --format json', 'Did you mean --output json?'],
  ['list --sort', 'See: plants list --help'],
  ['list --max 5', 'Did you mean --limit 5?'],
  ['list --max', 'Did you mean --limit?'],
  ['delete 1 --force', 'Did you mean --yes?'],
  ['restore plants.bak -f', 'Did you mean --yes?'],
  ['import plants.csv --force', 'Did you mean --if-exists update?'],
  ['export --force', 'See: plants export --help'],
  ['import --sep ,', 'See: plants import --help'],
  ['import --dry-run', 'Did you mean --check?'],
  ['create --check', 'Did you mean --dry-run?'],
  ['ls --db x', 'Did you mean --store?'],
  ['stores current', 'Did you mean: plants stores list'],
  ['feedback', 'Did you mean: plants help'],
  ['list --count', 'Did you mean: plants count'],
  ['restart', 'See: plants --help'],
  ['rstore', 'Did you mean restore?'],
  ['dele 1', 'See: plants --help'],
  ['delet 1', 'Did you mean delete?'],
  ['-- help', 'See: plants --help'],
  ['-- list', 'See: plants --help'],
  ['create 5 Rose', 'Did you mean: plants create --id 5 --name Rose'],
  ['create 5 Sweet pea --tag x', "Did you mean: plants create --tag x --id 5 --name 'Sweet pea'"],
  ['create 5 --name Rose', 'Did you mean: plants create --name Rose --id 5'],
  ['create 5 Rose --id 6', "Did you mean: plants create --id 6 --name '5 Rose'"],
  ['create {"id":1} -q', 'Write it to stdin: printf %s \'{"id":1}\' | plants create -q'],
  ['list --output csv', 'Use --format csv instead of --output csv'],
  ['export -o ndjson', 'Use --format ndjson instead of --output ndjson'],
  ['get 1 --output csv', 'For example: --output json'],
  ['create help', 'For its help: plants help create'],
  ['serve --port 0 help', 'For its help: plants help serve'],
])('plants %s: %s', async (argv, hint) => {
  expect((await refused({ argv })).err).toMatch(new RegExp(`\\n  ${hint.replace(/[?.{}|]/g, '\\$&')}\\n$`))
})
