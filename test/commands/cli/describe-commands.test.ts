import { expect, test } from 'vitest'
import { version } from '../../../package.json'
import { listedCommands } from '../../../src/cli/commands/index.js'
import { errorKinds } from '../../../src/errors.js'
import { pages } from '../../helpers/expect/documents.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'

interface Description {
  name: string
  usage: string
  arguments: { name: string; required: boolean; variadic: boolean; choices?: string[] }[]
  options: {
    name: string
    takesValue: boolean
    choices?: string[]
    default?: unknown
  }[]
  result?: string
  commands: Description[]
  variables: Record<string, string>
}

async function describeBy(line: string): Promise<Description> {
  const { code, out, err } = await new Sandbox().run(line)
  expect([code, err]).toEqual([0, ''])
  return JSON.parse(out)
}

test('the JSON of the help has every command, exit code and kind of error', async () => {
  const program = await describeBy('help --output json')
  expect(program.commands.map(({ name }) => name)).toEqual([...listedCommands.keys()])
  const codes = [0, ...Object.values(errorKinds).map(({ exitCode }) => exitCode)]
  expect(program).toMatchObject({
    exitCodes: Object.fromEntries([...new Set(codes)].map((code) => [code, expect.any(String)])),
    errorKinds: Object.entries(errorKinds).map(([kind, properties]) => ({
      ...{ kind, error: properties.error, exitCode: properties.exitCode },
      retryable: kind === 'unavailable',
    })),
  })
})

test('the JSON of the help has the environment variables of the page about settings', async () => {
  const { variables } = await describeBy('help -o json')
  const rows = (pages.get('docs/settings.md') ?? '').split('\n').filter((line) => /^\|/.test(line))
  const cells = rows.map((row) => row.split('|')).flatMap((row) => [row[1], row[3]])
  const documentedNames = new Set(cells.join().match(/(?<=`)(?!XDG_)[A-Z_]{2,}(?=`)/g))
  const names = Object.keys(variables).flatMap((key) => key.split(', '))
  expect(names.toSorted()).toEqual([...documentedNames].toSorted())
})

test('the words for the kinds of errors stay the same, because scripts compare them', () => {
  const words =
    'usage input tooLarge invalid unauthorized forbidden rejected notFound conflict constraint ' +
    'checkFailed unavailable accessDenied unknownOutcome badResponse noResponse incomplete ' +
    'internalError unwritable interrupted terminated'
  expect(Object.keys(errorKinds)).toEqual(words.split(' '))
})

test.each([...listedCommands.keys()])(
  'the JSON of the help of %s has what its page has',
  async (name) => {
    const description = await describeBy(`help ${name} -o json`)
    const { out: page } = await new Sandbox().run([name, '--help'])
    expect(page).toContain(description.usage.replace(/^plants \S+ /, ''))
    for (const { name: long } of description.options) expect(page).toContain(` ${long}`)
    for (const { name: subcommand } of description.commands)
      expect(page).toMatch(RegExp(`^  ${subcommand} `, 'm'))
    expect(await describeBy(`${name} --help -o ndjson`)).toEqual(description)
    expect((await describeBy('help -o json')).commands).toContainEqual(description)
  },
)

test('the JSON of the help has arguments, choices and defaults', async () => {
  const { options } = await describeBy('help list -ojson')
  const sort = { name: '--sort', takesValue: true, choices: ['id', 'name', 'tag'], default: 'id' }
  expect(options).toContainEqual(expect.objectContaining(sort))
  const { arguments: ids } = await describeBy('help get --output json')
  expect(ids).toMatchObject([{ name: 'id', required: true, variadic: true }])
  expect((await describeBy('help stores add -o json')).usage).toBe(
    'plants stores add [options] <name> <address>',
  )
})

test.each([
  ['import', 'import list.ndjson'],
  ['import', 'import list.ndjson --rejects rejects.ndjson'],
  ['import', 'import list.ndjson --dry-run'],
  ['export', 'export plants.csv'],
  ['backup', 'backup plants.bak'],
  ['count', 'count --by tag'],
])('the JSON of the help of %s has the keys that plants %s prints', async (path, line) => {
  const user = new Sandbox()
  await user.run('create --id 1 --name Fern --tag shade')
  user.write('list.ndjson', '{"id":2,"name":"Moss","tag":"shade"}\n{"id":1,"name":"Ivy"}\n')
  const { out } = await user.run(`${line} -o json`)
  const { result } = await describeBy(`help ${path} -o json`)
  const [printed] = [JSON.parse(out)].flat()
  const [, shape = ''] = /\{([^}]*)\}/.exec(result ?? '') ?? []
  const keys = shape.split(', ').map((key) => key.replace('?', ''))
  expect(keys).toEqual(expect.arrayContaining(Object.keys(printed)))
  const required = shape.split(', ').filter((key) => !key.endsWith('?'))
  expect(Object.keys(printed)).toEqual(expect.arrayContaining(required))
})

test('plants version -o json prints JSON', async () => {
  expect(await new Sandbox().run('version -o json')).toEqual(toJsonResult({ version }))
})

test.each([
  ...['help -o csv', 'help list -o xml', 'version -o tsv', 'completion bash -o json'],
  ...['stores -o json', 'openapi -o text', '-o json', 'doctor -o csv', 'config list -o tsv'],
])('plants %s rejects the format that it does not print', async (line) => {
  expect(await new Sandbox().run(line)).toMatchObject({ code: 2, out: '' })
})
