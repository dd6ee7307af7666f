import { beforeEach, describe, expect, test } from 'vitest'
import { printed, refusal, World } from '../../helpers/world.js'

const [moss, oak, fern] = [
  '{"id":1,"name":"Moss"}',
  '{"id":2,"name":"Oak","tag":"b"}',
  '{"id":3,"name":"Fern","tag":"b"}',
]
let user: World

beforeEach(async () => {
  user = new World()
  expect(await user.run('import', { stdin: [moss, oak, fern].join('\n') })).toMatchObject({ code: 0 })
})

const lines = (...texts: (string | undefined)[]) => texts.map((text) => `${text}\n`).join('')
const missing = (id: number) =>
  `plants: No plant has id ${id} in ${user.home}/data/plants.db\n  List the plants with: plants list\n`

describe('get of several ids', () => {
  test.each([
    ['3 1 3', lines(fern, moss)],
    ['1e0 -- 3', lines(moss, fern)],
    ['3 1 --output json', `[\n${fern},\n${moss}\n]\n`],
    ['3 1 --output csv', 'id,name,tag\n3,Fern,b\n1,Moss,\n'],
    ['3 1 --output text', 'ID  NAME  TAG\n 3  Fern  b\n 1  Moss\n'],
  ])('prints the plants in that order: %s', async (words, out) => {
    expect(await user.run(`get ${words}`)).toEqual(printed(out))
  })

  test('reports each that no plant has, in order, and prints the others', async () => {
    const ids = Array.from({ length: 200 }, (_, index) => index + 100)
    const err = ids.map(missing).join('')
    expect(await user.run(['get', ...ids.map(String), '1'])).toEqual({ code: 1, out: lines(moss), err })
    expect(await user.run('get 100 101 --output json')).toMatchObject({ code: 1, out: '' })
  })
})

describe('ids on stdin', () => {
  test.each([
    ['ids', '3\n1\n', lines(fern, moss)],
    ['one without a line break', '3', lines(fern)],
    ['plants, other objects and ids', `${oak}\r\n\r\n {"note":1,"id":3}\t\n1e0\n${oak}\n`, lines(oak, fern, moss)],
    ['a byte order mark', '\ufeff1\n', lines(moss)],
    ['none', '', ''],
  ])('are read: %s', async (_, stdin, out) => {
    expect(await user.run('get -', { stdin })).toEqual(printed(out))
  })

  test('are a list, even if there is one or none', async () => {
    const json = ['get', '-', '--output', 'json']
    expect(await user.run(json, { stdin: '1' })).toEqual(printed(`[\n${moss}\n]\n`))
    expect(await user.run(json, { stdin: '' })).toEqual(printed('[\n]\n'))
  })

  test.each([
    ['[', '['],
    ['id,name', 'id,name'],
    ['{"id":1', '{"id":1'],
    ['{"id":"1"}', '{"id":"1"}'],
    ['{"id":1.5}', '{"id":1.5}'],
    ['{"id":9223372036854775808}', '{"id":9223372036854775808}'],
    ['{"name":"Fern"}', '{"name":"Fern"}'],
    [`"${'x'.repeat(100)}`, `"${'x'.repeat(38)}…`],
  ])('change nothing if a line is neither an id nor a plant: %s', async (line, shown) => {
    const message = `Line 3 of stdin is neither an id nor a plant with an id: ${JSON.stringify(shown)}`
    const expected = refusal(message, 'For one plant on each line: plants list --output ndjson')
    const stdin = `1\n\n${line}\n`
    expect(await user.run('delete - --yes', { stdin })).toEqual(expected)
    expect(await user.run('update - --tag x', { stdin })).toEqual(expected)
    expect((await user.run('list')).out).toBe(lines(moss, oak, fern))
  })

  test('say what is wrong with a number', async () => {
    const message = 'Line 2 of stdin must be an integer without leading zeros, but was "007"'
    expect(await user.run('delete - --yes', { stdin: '1\n007\n' })).toEqual(refusal(message, 'For example: 1'))
  })

  test('delete nothing for an empty search', async () => {
    const message = '--search is empty, and would match every plant'
    const result = await user.run(['delete', '--search', '', '--yes'])
    expect(result).toEqual(refusal(message, 'Give it a text, or leave it out'))
  })

  test.each([
    [
      'not UTF-8',
      Buffer.from('1\n\xff', 'latin1'),
      'Stdin is not UTF-8',
      'Convert it from its encoding to UTF-8 first',
    ],
    ['cut inside a character', Buffer.from('1\n\xc3', 'latin1'), 'Stdin is not UTF-8', /Convert it/],
    ['UTF-16', Buffer.from('\ufeff1\n', 'utf16le'), 'Stdin is not UTF-8', 'Convert it from UTF-16 to UTF-8 first'],
    ['without an end', Buffer.alloc(7_000_000, '1'), 'A line of stdin is too long for a plant', /one on each line/],
    ['more than a million', '1\n'.repeat(1_000_001), 'Stdin has more than 1,000,000 ids', /split -l 1000000/],
  ])('are bounded: %s', async (_, stdin, message, hint) => {
    const { err, ...result } = await user.run('delete - --yes', { stdin })
    expect(result).toEqual({ code: 2, out: '' })
    expect(err).toContain(`plants: ${message}\n`)
    expect(err).toMatch(hint)
    expect((await user.run('count')).out).toBe('3\n')
  })

  test('do not go together with others', async () => {
    const expected = refusal('"-" reads all ids from stdin, but other ids were given', 'Leave out one of them')
    for (const command of ['get', 'update --tag x', 'delete --yes'])
      expect(await user.run(`${command} 1 -`, { stdin: '2' })).toEqual(expected)
  })
})

describe('update of several ids', () => {
  test('changes each of them, such as those of a list', async () => {
    const { out } = await user.run('list --search o')
    const changed = '{"id":1,"name":"Moss","tag":"bog"}\n{"id":2,"name":"Oak","tag":"bog"}\n'
    const dry = changed.replaceAll('{"id"', '{"dryRun":true,"id"')
    const total = 'plants: Would update 2 plants\n'
    expect(await user.run('update - --tag bog --dry-run', { stdin: out })).toEqual({ ...printed(dry), err: total })
    expect((await user.run('update 1 2 --tag bog --dry-run --output text')).out).toBe(
      'Would update Moss (id 1): tag none → "bog"\nWould update Oak (id 2): tag "b" → "bog"\n',
    )
    expect((await user.run('list --tag bog')).out).toBe('')
    expect(await user.run('update - --tag bog', { stdin: out })).toEqual(printed(changed))
    expect((await user.run('list --tag bog')).out).toBe(changed)
    expect(await user.run('update 1 2 --no-tag --output text')).toEqual(
      printed('Updated Moss (id 1)\nUpdated Oak (id 2)\n'),
    )
  })

  test('goes on after ids that no plant has, and reports them', async () => {
    const result = { code: 1, out: '{"id":1,"name":"Moss","tag":"x"}\n', err: missing(7) + missing(8) }
    expect(await user.run('update 7 1 8 --tag x')).toEqual(result)
  })

  test('keeps what others change at the same moment', async () => {
    const ids = Array.from({ length: 100 }, (_, index) => String(index + 1))
    await user.run('import --if-exists skip', { stdin: ids.map((id) => `{"id":${id},"name":"F"}`).join('\n') })
    const [one, other] = await Promise.all([
      user.run(['update', ...ids, '--name', 'Ivy']),
      user.run(['update', ...ids, '--tag', 'sun']),
    ])
    expect([one, other]).toMatchObject([{ code: 0 }, { code: 0 }])
    expect((await user.run('list')).out).toBe(ids.map((id) => `{"id":${id},"name":"Ivy","tag":"sun"}\n`).join(''))
  })

  test('says once how many texts an empty option replaces', async () => {
    const { err } = await user.run(['update', '1', '2', '3', '--name=', '--tag='])
    expect(err).toBe(
      lines(
        'plants: warning: --name is empty: the name of 3 plants changes to ""',
        'plants: warning: --tag is empty: the tag of 3 plants changes to "". To remove it, use --no-tag',
      ),
    )
  })

  test('wants something to change before it reads ids', async () => {
    expect(await user.run('update -', { stdin: 'no id' })).toMatchObject({
      code: 2,
      err: expect.stringContaining('update needs something to change'),
    })
  })
})

describe('delete', () => {
  test.each([
    ['--search O', lines(moss, oak), 'Deleted 2 plants'],
    ['--search o --tag b', lines(oak), 'Deleted 1 plant'],
    ['--no-tag', lines(moss), 'Deleted 1 plant'],
    ['--no-tag --search oak', '', 'Deleted 0 plants'],
  ])('takes what matches all filters: %s', async (filters, out, summary) => {
    expect(await user.run(`delete ${filters} --yes`)).toEqual({ code: 0, out, err: `plants: ${summary}\n` })
    expect((await user.run('list')).out).toBe(
      [moss, oak, fern]
        .filter((plant) => !out.includes(plant))
        .map((plant) => `${plant}\n`)
        .join(''),
    )
  })

  test('takes ids from stdin only with --yes or --dry-run, because nobody can be asked', async () => {
    const world = { stdin: lines(oak, fern), terminals: ['stdin', 'stderr'] as ('stdin' | 'stderr')[] }
    const message = 'Deleting requires confirmation'
    const hint = 'To delete without confirmation, add --yes'
    expect(await user.run('delete - --no-color', world)).toEqual(refusal(message, hint))
    expect((await user.run('delete - --dry-run', world)).out).toBe(
      lines(oak, fern).replaceAll('{"id"', '{"dryRun":true,"id"'),
    )
    expect(await user.run('delete - --yes', world)).toEqual(printed(lines(oak, fern)))
  })

  test('is repeatable with --ignore-missing', async () => {
    for (const out of [lines(moss, fern), ''])
      expect(await user.run('delete 1 7 3 --ignore-missing --yes')).toEqual(printed(out))
    expect(await user.run('delete 1 7 2 --ignore-missing --dry-run --output json')).toEqual(
      printed('[\n{"dryRun":true,"id":2,"name":"Oak","tag":"b"}\n]\n'),
    )
    expect(await new World().run('delete 1 --ignore-missing --yes')).toEqual(printed(''))
    expect(await user.run('delete --tag b --ignore-missing')).toEqual(
      refusal('--ignore-missing cannot be used with --tag', 'Leave out one of them'),
    )
  })
})
