import { beforeEach, describe, expect, test } from 'vitest'
import { type Result, type RunOptions, runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

let env: Record<string, string>

beforeEach(() => {
  env = { PLANTS_DATA_DIR: temporaryFolder() }
})

function plants(argv: string[], world: RunOptions = {}): Promise<Result> {
  return runPlants(argv, { ...world, env: { ...env, ...world.env } })
}

async function plant(...plantsToCreate: object[]): Promise<void> {
  for (const each of plantsToCreate) await plants(['create'], { stdin: JSON.stringify(each) })
}

const missing = (id: string) => ({
  code: 1,
  out: '',
  err: `plants: No plant has id ${id} in ${env['PLANTS_DATA_DIR']}/plants.db\n  List the plants with: plants list\n`,
})

const noStore = (id: string) => ({
  code: 1,
  out: '',
  err: `plants: No plant has id ${id} because there is no store at ${env['PLANTS_DATA_DIR']}/plants.db yet\n  List the stores with: plants stores list\n`,
})

describe('get', () => {
  test('prints the plant as it was given', async () => {
    await plants(['create'], { stdin: '{"id":9223372036854775807,"name":"Max","tag":"t"}' })
    expect(await plants(['get', '9223372036854775807'])).toEqual({
      code: 0,
      out: '{"id":9223372036854775807,"name":"Max","tag":"t"}\n',
      err: '',
    })
  })

  test('takes an id in any form of JSON, and a negative one', async () => {
    await plant({ id: 1000, name: 'Fern' }, { id: -5, name: 'Moss' })
    expect((await plants(['get', '1e3'])).out).toBe('{"id":1000,"name":"Fern"}\n')
    expect((await plants(['get', '-5'])).out).toBe('{"id":-5,"name":"Moss"}\n')
  })

  test('refuses an id that no plant has, and one in a store that is not there', async () => {
    expect(await plants(['get', '1'])).toEqual(noStore('1'))
    await plant({ id: 1, name: 'Fern' })
    expect(await plants(['get', '2'])).toEqual(missing('2'))
  })

  test('names in its hints the store that was asked', async () => {
    const store = `${env['PLANTS_DATA_DIR']}/it's a garden.db`
    await plants(['create', '--id', '1', '--name', 'Fern', '--store', store])
    const flag = `--store '${env['PLANTS_DATA_DIR']}/it'\\''s a garden.db'`
    expect((await plants(['get', '2', '--store', store])).err).toContain(
      `\n  List the plants with: plants list ${flag}\n`,
    )
    expect((await plants(['create', '--id', '1', '--name', 'x', '--store', store])).err).toContain(
      `\n  Look at it with: plants get 1 ${flag}\n`,
    )
  })

  test('shows a card on a terminal', async () => {
    await plant({ id: 1, name: 'Fern\u001b[31m', tag: 'a\nb' })
    expect(await plants(['get', '1', '--no-color'], { terminals: ['stdout'] })).toEqual({
      code: 0,
      out: 'id    1\nname  Fern\\u{1b}[31m\ntag   a\\u{a}b\n',
      err: '',
    })
  })
})

describe('list', () => {
  test('prints a JSON object a line, in the order of ids', async () => {
    await plant({ id: 10, name: 'Ten' }, { id: 9, name: 'Nine', tag: 'odd' }, { id: -1, name: 'Minus' })
    const out = '{"id":-1,"name":"Minus"}\n{"id":9,"name":"Nine","tag":"odd"}\n{"id":10,"name":"Ten"}\n'
    expect(await plants(['list'])).toEqual({ code: 0, out, err: '' })
  })

  test('prints as many as asked for, after an id, with a tag', async () => {
    await plant(...[1, 2, 3, 4, 5, 6].map((id) => ({ id, name: `F${id}`, tag: id % 2 ? 'odd' : 'even' })))
    expect((await plants(['list', '--limit', '1', '--after=2', '--tag', 'even'])).out).toBe(
      '{"id":4,"name":"F4","tag":"even"}\n',
    )
  })

  test('prints those whose name or tag contains a text, and so does export', async () => {
    await plant(
      { id: 1, name: 'Sword fern' },
      { id: 2, name: 'Moss', tag: 'FERNY' },
      { id: 3, name: 'Ivy', tag: 'shade' },
    )
    const found = { code: 0, out: '{"id":1,"name":"Sword fern"}\n{"id":2,"name":"Moss","tag":"FERNY"}\n', err: '' }
    expect([await plants(['list', '--search', 'Fern']), await plants(['export', '--search', 'fErn'])]).toEqual([
      found,
      found,
    ])
    const nothing = await plants(['list', '--search', 'fern', '--tag', 'shade', '--no-color'], {
      terminals: ['stdout'],
    })
    expect(nothing).toEqual({ code: 0, out: '', err: 'plants: No plants match\n' })
  })

  test('prints nothing for a store that is not there, and says so', async () => {
    const err = `plants: There is no store at ${env['PLANTS_DATA_DIR']}/plants.db yet: plants create creates it\n`
    expect(await plants(['list'])).toEqual({ code: 0, out: '', err })
  })

  test('says on a terminal that there are no plants', async () => {
    await plant({ id: 1, name: 'Fern' })
    await plants(['delete', '1', '--yes'])
    expect(await plants(['list', '--no-color'], { terminals: ['stdout'] })).toEqual({
      code: 0,
      out: '',
      err: 'plants: No plants\n',
    })
    expect(await plants(['list'])).toEqual({ code: 0, out: '', err: '' })
  })

  test('aligns wide characters, combining marks and emoji on a terminal', async () => {
    await plant(
      { id: 1, name: 'Fern', tag: 'shade' },
      { id: 20, name: '羊歯', tag: 'shade' },
      { id: 300, name: 'Fe\u0301 👩‍🌾', tag: 'x' },
    )
    const out = ' ID  NAME   TAG\n  1  Fern   shade\n 20  羊歯   shade\n300  Fe\u0301 👩‍🌾  x\n'
    expect(await plants(['list', '--no-color'], { terminals: ['stdout'] })).toEqual({ code: 0, out, err: '' })
  })

  test('shows a plant with a name of a megabyte, without a long wait', async () => {
    await plant({ id: 1, name: `${'é'.repeat(300_000)}` })
    expect((await plants(['list', '--no-color'], { terminals: ['stdout'], columns: 30 })).out).toBe(
      `ID  NAME                   TAG\n 1  ${'é'.repeat(20)}…\n`,
    )
  })

  test.each([
    ['name', { name: 'x'.repeat(1_000_000), tag: 'shade' }, `${'x'.repeat(999)}…  shade`],
    ['tag', { name: 'Fern', tag: '羊'.repeat(300_000) }, `Fern  ${'羊'.repeat(499)}…`],
    ['name with an escape', { name: `\u001b${'x'.repeat(1_000_000)}` }, `\\u{1b}${'x'.repeat(993)}…`],
  ])(
    'makes a column at most 1000 wide without a terminal: a %s of a megabyte among a thousand plants',
    async (_, long, line) => {
      await plant({ id: 1, ...long })
      const others = Array.from({ length: 999 }, (_, index) => `{"id":${index + 2},"name":"Fern","tag":"shade"}\n`)
      await plants(['import', '-'], { stdin: others.join('') })
      const { code, out, err } = await plants(['list', '--output', 'text'])
      const [, first, ...rest] = out.split('\n')
      expect({ code, err, first: first?.trimStart(), rows: rest.length }).toEqual({
        code: 0,
        err: '',
        first: `1  ${line}`,
        rows: 1000,
      })
      expect(out.length).toBeLessThan(2_000_000)
      expect((await plants(['get', '1'])).out.length).toBe(JSON.stringify({ id: 1, ...long }).length + 1)
    },
  )

  test('cuts what does not fit the terminal, but never an id', async () => {
    await plant(
      { id: 1, name: '羊'.repeat(30), tag: 'short' },
      { id: 2, name: 'Fern', tag: `${'long '.repeat(20)}tag` },
    )
    const out = 'ID  NAME              TAG\n 1  羊羊羊羊羊羊羊…   short\n 2  Fern              long long long …\n'
    expect((await plants(['list', '--no-color'], { terminals: ['stdout'], columns: 38 })).out).toBe(out)
    const lines = (await plants(['list', '--output', 'text'])).out
    expect(lines).toContain(`${'long '.repeat(20)}tag`)
  })
})

describe('update', () => {
  test('changes what is given, and prints the plant as it is now', async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    const changes: [flags: string[], out: string][] = [
      [['--name', 'Sword fern'], '{"id":1,"name":"Sword fern","tag":"shade"}\n'],
      [['--no-tag'], '{"id":1,"name":"Sword fern"}\n'],
      [['--name=x', '--tag', 'sun'], '{"id":1,"name":"x","tag":"sun"}\n'],
    ]
    for (const [flags, out] of changes) {
      expect(await plants(['update', '1', ...flags])).toEqual({ code: 0, out, err: '' })
      expect((await plants(['get', '1'])).out).toBe(out)
    }
    const said = await plants(['update', '1', '--name', 'Fern', '--no-color'], { terminals: ['stdout'] })
    expect(said).toEqual({ code: 0, out: 'Updated Fern (id 1, tag sun)\n', err: '' })
  })

  test('takes the idempotency key, so that a late retry of the create makes no second plant', async () => {
    const create = ['create', '--id', '1', '--name', 'Fern', '--idempotency-key', 'order-1']
    await plants(create)
    await plants(['update', '1', '--name', 'Moss'])
    expect((await plants(create)).err).toContain('A plant with id 1 already exists')
    expect((await plants(['list'])).out).toBe('{"id":1,"name":"Moss"}\n')
  })

  test('wants something to change', async () => {
    const err = 'plants: update needs something to change\n  Add one of --name, --tag, --no-tag\n'
    expect(await plants(['update', '1'])).toEqual({ code: 2, out: '', err })
  })

  test('refuses an id that no plant has, and one in a store that is not there', async () => {
    expect(await plants(['update', '1', '--no-tag'])).toEqual(noStore('1'))
    await plant({ id: 1, name: 'Fern' })
    expect(await plants(['update', '2', '--no-tag'])).toEqual(missing('2'))
  })

  test('keeps what others change at the same moment', async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    await Promise.all([plants(['update', '1', '--name', 'Moss']), plants(['update', '1', '--tag', 'sun'])])
    expect((await plants(['get', '1'])).out).toBe('{"id":1,"name":"Moss","tag":"sun"}\n')
  })
})

describe('delete', () => {
  test('prints what it deleted, so that it can be created again', async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    const deleted = await plants(['delete', '1', '--yes'])
    expect(deleted).toEqual({ code: 0, out: '{"id":1,"name":"Fern","tag":"shade"}\n', err: '' })
    expect(await plants(['get', '1'])).toEqual(missing('1'))
    expect(await plants(['create'], { stdin: deleted.out })).toEqual({
      code: 0,
      out: '{"name":"Fern","tag":"shade"}\n',
      err: '',
    })
  })

  test('wants --yes where nobody can be asked', async () => {
    await plant({ id: 1, name: 'Fern' })
    const err = 'plants: Deleting requires confirmation\n  To delete without confirmation, add --yes\n'
    expect(await plants(['delete', '1'])).toEqual({ code: 2, out: '', err })
    expect(await plants(['delete', '1', '--no-input', '--no-color'], { terminals: ['stdin', 'stderr'] })).toEqual({
      code: 2,
      out: '',
      err,
    })
    expect((await plants(['get', '1'])).code).toBe(0)
  })

  test('refuses an id that no plant has', async () => {
    expect(await plants(['delete', '1', '--yes'])).toEqual(noStore('1'))
  })
})
