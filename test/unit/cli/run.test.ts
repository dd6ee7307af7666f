import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { PlantsError } from '../../../src/platform/errors.js'
import { commandNames, helpsOf } from '../../helpers/helps.js'
import { type Result, type RunOptions, runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const fern = ['create', '--id', '1', '--name', 'Fern']

function plants(argv: string[], world: RunOptions = {}): Promise<Result> {
  return runPlants(argv, { ...world, env: { PLANTS_DATA_DIR: temporaryFolder(), ...world.env } })
}

describe('help', () => {
  test.each([['--help'], ['-h'], ['help'], []])('is an answer: plants %s', async (...argv) => {
    const { code, out, err } = await plants(argv)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^Usage: plants <command> \[options\]\n/)
    for (const name of commandNames) expect(out).toMatch(new RegExp(`^(.{40})?  ${name} `, 'm'))
  })

  test.each([
    ['create', '--help'],
    ['help', 'create'],
    ['create', '-h'],
    ['create', '--help', '1'],
    ['--help', 'create'],
    ['-h', 'new'],
  ])('of a command: plants %s %s', async (...argv) => {
    expect((await plants(argv)).out).toMatch(/^Usage: plants create\|new \[options\]\n/)
  })

  test('of the program fits a terminal of 80 columns and 24 rows, and says where to read more', async () => {
    const { out } = await plants([], { terminals: ['stdout'], env: { NO_COLOR: '1' } })
    const lines = out.split('\n')
    expect(lines.length).toBeLessThanOrEqual(24)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(lines.slice(-3)).toEqual([
      expect.stringMatching(/^More help: plants help <command>, /),
      'Manual: man plants, with the npm package',
      '',
    ])
  })

  test('of the program has one column where two do not fit', async () => {
    const { out } = await plants(['--help'], { terminals: ['stdout'], columns: 79, env: { NO_COLOR: '1' } })
    expect(out).toContain('Plants:\n  create      create a plant\n')
    expect(out).toContain('Setup:\n  stores      name and select stores\n')
  })

  test('of a command begins with its usage, ends with examples, and has its own options alone', async () => {
    const { out } = await plants(['help', 'rm'])
    expect(out).toBe(`Usage: plants delete|rm [options] [id...]

Delete plants by id, or all that match, and print them, so that they can be created again.

Arguments:
  id                    ids of the plants; "-" for ids or plants on stdin, one on each line

Options:
  -t, --tag <text>      only plants with this tag
      --no-tag          only plants without a tag
      --search <text>   only plants whose name or tag contains this text, in any case
      --ignore-missing  ignore ids that no plant has
      --dry-run         print what would be deleted, but delete nothing
  -y, --yes             do not ask for confirmation
  -h, --help            show this help

Examples:
  plants delete 1 2 3 --yes > deleted.ndjson
  plants delete --tag shade --search fern --dry-run

Global options: plants help options
`)
  })

  test('has bold titles where colours are, and three examples at most', async () => {
    const { out } = await plants(['get', '--help'], { terminals: ['stdout'] })
    expect(out).toContain('\u001b[1mOptions:\u001b[22m\n  -h, --help  show this help\n')
    for (const [path, page] of await helpsOf([])) {
      const [, examples = ''] = /^Examples?:\n((?: {2}.*\n)*)/m.exec(page) ?? []
      expect({ path, isShort: examples.split('\n').length <= 4 }).toEqual({ path, isShort: true })
    }
  })

  test('of the options is a page with those of every command', async () => {
    const { out } = await plants(['help', 'options'])
    for (const option of ['-s, --store <address>', '-o, --output <format>', '-q, --quiet', '    --no-input'])
      expect(out).toContain(`\n  ${option} `)
  })

  test('of the environment is a page, with global flags before and behind', async () => {
    const page = await plants(['help', 'environment'])
    expect(page).toEqual({
      code: 0,
      out: expect.stringMatching(/^Precedence, highest first: flag, variable, /),
      err: '',
    })
    for (const flags of [
      ['--output', 'json'],
      ['--no-color'],
      ['-v'],
      ['--store', './x.db'],
      ['--timeout=1s', '--no-input'],
    ]) {
      expect(await plants([...flags, 'help', 'environment'])).toEqual(page)
      expect(await plants(['help', 'environment', ...flags])).toEqual(page)
    }
  })

  test.each([
    ['create', '--help'],
    ['help', 'environment'],
    ['help', 'exit-codes'],
  ])('fits the terminal: plants %s %s', async (...argv) => {
    const { out } = await plants(argv, { terminals: ['stdout'], columns: 60 })
    const texts = out.split('\n').filter((line) => !line.includes('plants create --') && !line.includes('| plants'))
    expect(Math.max(...texts.map((line) => line.length))).toBeLessThanOrEqual(60)
  })

  test.each([
    [['import', 'help', 'environment'], 2],
    [['import', '--', 'help', 'environment'], 2],
    [['create', '--id', '1', '--name', 'help', 'environment'], 2],
    [['create', '--id', '1', '--name', 'help', '--tag', 'formats'], 0],
    [['create', '--name', 'help', 'formats', '--id', '1'], 2],
    [['list', 'help', 'exit-codes'], 2],
  ])('is not what a command is given: %j', async (argv, code) => {
    const result = await plants(argv, { cwd: temporaryFolder() })
    const page = /Settings:|The exit codes of|As flags of plants create/
    expect({ code: result.code, isPage: page.test(result.out) }).toEqual({ code, isPage: false })
    const [topic = ''] = argv.filter((word) => ['environment', 'formats', 'exit-codes'].includes(word))
    expect((await plants(['help', topic])).out).toMatch(page)
  })

  test.each(['--version', '-V', '-v', 'version'])('the version is an answer: plants %s', async (flag) => {
    expect(await plants([flag])).toEqual({ code: 0, out: `${version}\n`, err: '' })
  })
})

describe('short names', () => {
  test('of options do what the long ones do', async () => {
    const env = { PLANTS_DATA_DIR: temporaryFolder() }
    const store = `${temporaryFolder()}/x.db`
    const created = await plants(['create', '-i', '1', '-n', 'Fern', '-t', 'shade', '-s', store, '-o', 'text'], { env })
    expect(created).toEqual({
      code: 0,
      out: 'Planted Fern (id 1, tag shade)\n',
      err: `plants: Created store ${store}\n`,
    })
    expect((await plants(['list', '-tshade', `-s${store}`], { env })).out).toBe(
      '{"id":1,"name":"Fern","tag":"shade"}\n',
    )
    expect((await plants(['delete', '1', '-y', '-o', 'text', '-qs', store], { env })).out).toBe('')
    expect((await plants(['get', '1', '-s', store, '-o', 'json'], { env })).err).toMatch(/^\{"error":404,/)
  })

  test('of commands do what the long ones do', async () => {
    const env = { PLANTS_DATA_DIR: temporaryFolder(), PLANTS_CONFIG_DIR: temporaryFolder() }
    for (const argv of [
      ['new', ...fern.slice(1)],
      ['add', '--id', '2', '--name', 'Moss'],
      ['show', '1'],
      ['rm', '2', '--yes'],
    ])
      expect(await plants(argv, { env })).toMatchObject({ code: 0, err: '' })
    expect((await plants(['ls'], { env })).out).toBe('{"id":1,"name":"Fern"}\n')
    expect((await plants(['stores', 'add', 'garden', './garden.db'], { env })).code).toBe(0)
    expect((await plants(['stores', 'ls'], { env })).out).toContain('"name":"garden"')
    expect((await plants(['stores', 'rm', 'garden'], { env })).code).toBe(0)
  })
})

test('--quiet leaves what was asked for, and errors', async () => {
  const env = { PLANTS_DATA_DIR: temporaryFolder() }
  const nothing = { code: 0, out: '', err: '' }
  const quiet = (argv: string[], stdin?: string) =>
    plants([...argv, '--quiet'], { env, ...(stdin !== undefined && { stdin }) })
  expect(await quiet(['list'])).toEqual(nothing)
  const plant = '{"id":1,"name":"Fern","colour":"green"}'
  expect(await quiet(['create'], plant)).toEqual({ ...nothing, out: '{"name":"Fern"}\n' })
  expect(await quiet(['update', '1', '--tag', 'a', '-o', 'text'])).toEqual(nothing)
  expect(await quiet(['update', '1', '--no-tag'])).toEqual({ ...nothing, out: '{"id":1,"name":"Fern"}\n' })
  expect(await quiet(['list'])).toEqual({ code: 0, out: '{"id":1,"name":"Fern"}\n', err: '' })
  expect(await quiet(['create', '--id', '2', '--name', 'Moss', '--dry-run'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('"dryRun":true'),
  })
  expect(await quiet(['import', '-o', 'text'], '{"id":1,"name":"Fern"}\n{"id":3,"name":"Ivy","age":1}\n')).toEqual({
    code: 6,
    out: '',
    err: 'plants: 1 plant was rejected\n  For ids that exist, use --if-exists skip, same or update. To keep the rejected plants in a file, run it again with: --if-exists same --rejects rejected.txt\n',
  })
  expect((await quiet(fern)).err).toBe('plants: A plant with id 1 already exists\n  Look at it with: plants get 1\n')
})

test.each([
  [{ PLANTS_NO_INPUT: '1' }, false],
  [{ PLANTS_NO_INPUT: 'false', CI: 'True' }, false],
  [{ PLANTS_NO_INPUT: '0', CI: '' }, true],
])('with %j it is asked on a terminal: %s', async (env, asks) => {
  const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted'))
  const { code } = await plants(['create', '--id', '1'], { env, terminals: ['stdin', 'stderr'], signal })
  expect(code).toBe(asks ? 130 : 2)
})

describe('global flags', () => {
  const text = { code: 0, out: 'Planted Fern (id 1)\n', err: '' }

  test('work before and after the command', async () => {
    expect(await plants(['--output', 'text', ...fern])).toEqual(text)
    expect(await plants([...fern, '--output=text'])).toEqual(text)
    const store = `${temporaryFolder()}/x.db`
    await plants(['--store', store, ...fern])
    expect((await plants(['get', '1', '--store', store])).out).toBe('{"id":1,"name":"Fern"}\n')
  })

  test('--store wins over PLANTS_STORE, which wins over the data directory', async () => {
    const [first, second] = [`${temporaryFolder()}/1.db`, `${temporaryFolder()}/2.db`]
    await plants(fern, { env: { PLANTS_STORE: first } })
    expect((await plants(['list', '--store', first])).out).toBe('{"id":1,"name":"Fern"}\n')
    await plants(['create', '--id', '1', '--name', 'Moss', '--store', second], { env: { PLANTS_STORE: first } })
    expect((await plants(['list', '--store', second])).out).toBe('{"id":1,"name":"Moss"}\n')
  })

  test.each<[string, RunOptions, string[], boolean]>([
    ['a terminal', { terminals: ['stdout'] }, [], true],
    ['a pipe', {}, ['--output', 'text'], false],
    ['a terminal with --no-color', { terminals: ['stdout'] }, ['--no-color'], false],
    ['a terminal with NO_COLOR', { terminals: ['stdout'], env: { NO_COLOR: '1' } }, [], false],
    ['a terminal with an empty NO_COLOR', { terminals: ['stdout'], env: { NO_COLOR: '' } }, [], true],
    ['a dumb terminal', { terminals: ['stdout'], env: { TERM: 'dumb' } }, [], false],
    ['a pipe with FORCE_COLOR', { env: { FORCE_COLOR: '1' } }, ['--output', 'text'], true],
    ['a terminal with FORCE_COLOR=0', { terminals: ['stdout'], env: { FORCE_COLOR: '0' } }, [], false],
  ])('colour what goes to %s or not', async (_, world, flags, isColored) => {
    const { out } = await plants([...fern, ...flags], world)
    expect(out).toBe(
      isColored
        ? '\u001b[1mFern\u001b[22m \u001b[2m(id 1)\u001b[22m\n'.replace(/^/, 'Planted ')
        : 'Planted Fern (id 1)\n',
    )
  })

  test('colour errors only on a terminal', async () => {
    const { err } = await plants(['get', '1n'], { terminals: ['stderr'] })
    const message = 'id must be an integer, in digits only, but was "1n"'
    expect(err).toBe(`\u001b[31mplants:\u001b[39m ${message}\n  \u001b[2mFor example: 1\u001b[22m\n`)
  })
})

test.each([
  ['stores remote team', 'Did you mean remove?'],
  ['stores unset team', 'See: plants stores --help'],
  ['stores move team garden', 'See: plants stores --help'],
  ['config onset timeout', 'See: plants config --help'],
  ['tokens invoke 1', 'See: plants tokens --help'],
  ['tokens evoke 1', 'See: plants tokens --help'],
  ['auth layout', 'See: plants auth --help'],
  ['elete 1', 'See: plants --help'],
  ['relete 1', 'See: plants --help'],
  ['delette 1', 'Did you mean delete?'],
])('what removes something is suggested only to who began to write it: %s', async (line, hint) => {
  const { code, err } = await plants(line.split(' '))
  expect({ code, hint: err.split('\n')[1] }).toEqual({ code: 2, hint: `  ${hint}` })
})

test.each(['--no-allow-http', '--disallow-http'])(
  'what widens trust is not suggested to who wrote its opposite: %s',
  async (flag) => {
    const { code, err } = await plants(['list', flag])
    expect({ code, err }).toEqual({ code: 2, err: `plants: Unknown option ${flag}\n  See: plants list --help\n` })
  },
)

test('an error is one line of JSON when that was asked for, also before the flags were understood', async () => {
  expect(await plants(['crate', '--output', 'json'])).toEqual({
    code: 2,
    out: '',
    err: `{"error":400,"message":"Unknown command crate","hint":"Did you mean create?"}\n`,
  })
})

test('a defect is told as one, with its stack, and ends with 70', async () => {
  const broken = Object.defineProperty({}, 'PLANTS_DATA_DIR', {
    get: () => {
      throw new RangeError('boom')
    },
  })
  const { code, err } = await runPlants(fern, { env: broken })
  expect(code).toBe(70)
  expect(err).toMatch(/^plants: Internal error, a bug in plants: boom\n {2}RangeError: boom\n {6}at .*\n/)
  const hint = 'Please report it, with this text, your command, and what this prints: '
  expect(err.split('\n').slice(-2)).toEqual([`  ${hint}plants version --output json`, ''])
})
