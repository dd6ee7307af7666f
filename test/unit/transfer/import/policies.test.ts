import { readdirSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { complaints, Importing, imported, lines, summary } from '../../../helpers/importing.js'

let user: Importing

beforeEach(() => {
  user = new Importing()
})

const goOn = 'Fix it, then run the same command again to resume from it'
const plant = (id: number | string, name = `Plant ${id}`, tag?: string) =>
  `${JSON.stringify({ id: 0, name, tag }).replace('0', String(id))}\n`

describe('--if-exists', () => {
  const stored = [plant(1, 'A', 'x'), plant(2, 'B'), plant(3, 'C', '')].join('')
  const again = [plant(1, 'A', 'x'), plant(2, 'B', ''), plant(3, 'C'), plant(4, 'D'), plant(4, 'D'), plant(4, 'E')].join('')
  const changed = [plant(1, 'A', 'x'), plant(2, 'B', ''), plant(3, 'C'), plant(4, 'E')].join('')

  test.each([
    ['error', { created: 1, refused: 5, reasons: { 409: 5 } }, [1, 2, 3, 5, 6]],
    ['skip', { created: 1, skipped: 5 }, []],
    ['same', { created: 1, skipped: 2, refused: 3, reasons: { 409: 3 } }, [2, 3, 6]],
    ['update', { created: 1, updated: 3, skipped: 2 }, []],
  ])('%s', async (policy, counts, refused) => {
    await user.import([], { stdin: stored })
    const { code, summary: told, err } = await user.import(['--if-exists', policy], { stdin: again })
    expect({ code, told }).toEqual({ code: refused.length ? 6 : 0, told: summary(counts) })
    expect(Array.from(err.matchAll(/stdin:(\d+): /g), ([, line]) => Number(line))).toEqual(refused)
    expect(await user.list()).toBe(policy === 'update' ? changed : stored + plant(4, 'D'))
  })

  test.each([
    ['error', { valid: 1, refused: 5, reasons: { 409: 5 } }],
    ['skip', { valid: 1, skipped: 5 }],
    ['same', { valid: 1, skipped: 2, refused: 3, reasons: { 409: 3 } }],
    ['update', { valid: 1, updated: 3, skipped: 2 }],
  ])('%s, and --check says the same', async (policy, counts) => {
    await user.import([], { stdin: stored })
    const { summary: told } = await user.import(['--if-exists', policy, '--check'], { stdin: again })
    expect(told).toEqual({ updated: 0, skipped: 0, refused: 0, reasons: {}, unknown: 0, ...counts })
    expect(await user.list()).toBe(stored)
  })

  test.each([
    ['skip', { created: 1, skipped: 5 }, 0],
    ['same', { created: 0, skipped: 2, refused: 3, reasons: { 409: 3 } }, 6],
    ['update', { created: 1, updated: 3, skipped: 2 }, 0],
  ])('%s goes with --atomic', async (policy, counts, code) => {
    await user.import([], { stdin: stored })
    expect(await user.import(['--if-exists', policy, '--atomic'], { stdin: again })).toMatchObject({ code, summary: summary(counts) })
    expect(await user.list()).toBe(policy === 'update' ? changed : code ? stored : stored + plant(4, 'D'))
  })

  test.each(['', '--check', '--atomic', '--id-from=2'])('same says that a plant differs, and how to replace it: %s', async (flag) => {
    await user.import([], { stdin: stored })
    const { err } = await user.import(['--if-exists', 'same', '--output', 'json', ...(flag ? [flag] : [])], { stdin: plant(2, 'X') })
    const [reason, end] = lines(err).map((line) => JSON.parse(line))
    expect(reason).toMatchObject({ error: 409, message: expect.stringMatching(/(^|: )A different plant with id 2 already exists$/) })
    const choice = flag.startsWith('--id-from') ? 'another --id-from' : '--if-exists update'
    expect(end).toMatchObject({ error: 409, hint: expect.stringContaining(`For ids that exist, use ${choice}. `) })
  })

  test('update says how many plants it has replaced', async () => {
    await user.import([], { stdin: stored })
    const { out } = await user.run(['import', '--if-exists', 'update', '--output', 'text'], { stdin: again })
    expect(out).toMatch(/^Read 6 plants in \d+\.\d s: 1 created, 3 updated, 2 skipped\n$/)
  })

  test.each(['--atomic', '--check'])('update %s goes by what the input says last, not by the store', async (flag) => {
    await user.import([], { stdin: stored })
    const { summary: told } = await user.import(['--if-exists', 'update', flag], { stdin: plant(2, 'X') + plant(2, 'X') + plant(2, 'B') })
    expect(told).toMatchObject({ updated: 2, skipped: 1 })
    expect(await user.list()).toBe(stored)
  })

  test('counts the first of several with an id, also when ids are in no order', async () => {
    const stdin = [plant(5, 'first'), plant(3, 'x'), plant(5, 'second'), plant(-1, 'y'), plant(3, 'z'), plant(5, 'third')].join('')
    const { err } = await user.import([], { stdin })
    expect(err).toBe(
      complaints(
        [
          'stdin:3: A plant with id 5 already exists',
          'stdin:5: A plant with id 3 already exists',
          'stdin:6: A plant with id 5 already exists',
        ],
        '3 plants were rejected',
      ),
    )
    expect(await user.list()).toBe(plant(-1, 'y') + plant(3, 'x') + plant(5, 'first'))
  })
})

describe('--check', () => {
  test('finds ids that are twice in the input, and makes no file', async () => {
    user.write('plants', plant(1) + plant(2) + plant(1))
    expect(await user.import(['plants', '--check', '--rejects', 'bad'])).toMatchObject({
      code: 6,
      summary: { valid: 2, refused: 1, reasons: { 409: 1 } },
    })
    expect(readdirSync(user.folder).toSorted()).toEqual(['bad', 'bad.reasons', 'plants'])
    expect(user.read('bad')).toBe(plant(1))
    expect(user.reasons('bad')).toEqual([{ file: 'plants', line: 3, error: 409, message: expect.stringContaining('id 1') }])
  })

  test('finds ids that are twice over several inputs', async () => {
    user.write('one', plant(1) + plant(2))
    user.write('other', plant(3) + plant(2))
    const { err } = await user.import(['one', 'other', '--check'])
    expect(err).toMatch(/^plants: other:2: [^\n]*\bid 2\b/)
  })

  test('finds nothing wrong, and says so', async () => {
    user.write('plants', plant(1) + plant(2))
    expect(await user.import(['plants', '--check'])).toEqual({
      code: 0,
      summary: { valid: 2, updated: 0, skipped: 0, refused: 0, reasons: {}, unknown: 0 },
      err: '',
    })
    expect(readdirSync(user.folder)).toEqual(['plants'])
    expect((await user.run(['import', 'plants', '--check', '--output', 'text'])).out).toMatch(
      /^Checked 2 plants in \d+\.\d s(?: \([\d,]+\/s\))?: 2 can be created\n$/,
    )
  })
})

describe('--atomic', () => {
  test('creates all', async () => {
    user.write('one', plant(1) + plant(2))
    expect(await user.import(['one', '-', '--atomic'], { stdin: plant(3) })).toEqual(imported({ created: 3 }))
    expect(await user.list()).toBe(plant(1) + plant(2) + plant(3))
  })

  test.each([
    ['a record that is no plant', '{"id":9}\n'],
    ['an id that is taken', plant(7)],
    ['an id that is there twice', plant(1)],
  ])('creates none because of %s', async (_, last) => {
    await user.import([], { stdin: plant(7) })
    user.write('plants', plant(1) + plant(2) + last)
    const { code, summary: told, err } = await user.import(['plants', '--atomic'])
    expect({ code, told }).toMatchObject({ code: 6, told: { created: 0, refused: 1 } })
    expect(err).toMatch(/\nplants: 1 plant was rejected, so nothing was created\n/)
    expect(await user.list()).toBe(plant(7))
  })

  test('does not send people to a rejects file that alone would be half of it', async () => {
    const { err } = await user.import(['--atomic', '--rejects', 'bad'], { stdin: `${plant(1)}{"id":2}\n` })
    expect(err).not.toContain('then: plants import')
  })
})

describe('--on-error stop', () => {
  test.each([
    ['a record that is no plant', '{"id":2}\n', 422],
    ['a record that is no JSON', '{"id":2\n', 400],
    ['an id that is taken', plant(9), 409],
    ['a record that is too large', `{"id":2,"name":"${'x'.repeat(1_100_000)}"}\n`, 413],
    ['a record that is very large', `{"id":2,"name":"${'x'.repeat(5_000_000)}"}\n`, 413],
  ])('stops before %s, and goes on there when it is mended', async (_, bad, error) => {
    await user.import([], { stdin: plant(9) })
    user.write('plants', `${plant(1)}\n${bad}${plant(3)}{"id":4}\n${plant(5)}`)
    const stopped = await user.import(['plants', '--on-error', 'stop'])
    expect(stopped).toEqual({
      code: 6,
      summary: summary({ created: 1, refused: 1, reasons: { [error]: 1 } }),
      err: expect.stringMatching(
        new RegExp(`^plants: plants:3: .*\nplants: 1 plant was rejected, and the import stopped there\n  ${goOn}\n$`),
      ),
    })
    expect(await user.list()).toBe(plant(1) + plant(9))
    user.write('plants', `${plant(1)}\n${plant(2)}${plant(3)}{"id":4}\n${plant(5)}`)
    expect(await user.import(['plants', '--on-error', 'stop'])).toMatchObject({ code: 6, summary: { refused: 1 } })
    expect(await user.list()).toBe(plant(1) + plant(2) + plant(3) + plant(9))
    user.write('plants', `${plant(1)}\n${plant(2)}${plant(3)}${plant(4)}${plant(5)}`)
    expect(await user.import(['plants', '--on-error', 'stop'])).toMatchObject({ code: 0 })
    expect(await user.list()).toBe([1, 2, 3, 4, 5, 9].map((id) => plant(id)).join(''))
  })

  test('counts each plant once over its runs', async () => {
    user.write('plants', `${plant(1)}{"id":2}\n${plant(3)}`)
    await user.import(['plants', '--on-error', 'stop'])
    user.write('plants', plant(1) + plant(2) + plant(3))
    expect(await user.import(['plants', '--on-error', 'stop'])).toEqual({
      code: 0,
      summary: summary({ created: 3 }),
      err: 'plants: Resuming an interrupted import: 1 plant is done\n',
    })
  })

  test('keeps the refused record only as long as it is refused', async () => {
    user.write('plants', `${plant(1)}{"id":2}\n${plant(3)}{"id":4}\n`)
    const flags = ['plants', '--on-error', 'stop', '--rejects', 'bad']
    await user.import(flags)
    expect(user.read('bad')).toBe('{"id":2}\n')
    user.write('plants', `${plant(1)}${plant(2)}${plant(3)}{"id":4}\n`)
    await user.import(flags)
    expect(user.read('bad')).toBe('{"id":4}\n')
    expect(user.reasons('bad').map(({ line }) => line)).toEqual([4])
    user.write('plants', plant(1) + plant(2) + plant(3) + plant(4))
    expect(await user.import(flags)).toMatchObject({ code: 0 })
    expect([user.has('bad'), user.has('bad.reasons')]).toEqual([false, false])
  })

  test('goes on with the numbers where it stopped', async () => {
    user.write('plants', '{"name":"A"}\n{"nmae":"B"}\n{"name":"C"}\n')
    const flags = ['plants', '--on-error', 'stop', '--id-from', '1']
    expect(await user.import(flags)).toMatchObject({ code: 6 })
    user.write('plants', '{"name":"A"}\n{"name":"B"}\n{"name":"C"}\n')
    expect(await user.import(flags)).toMatchObject({ code: 0 })
    expect(await user.list()).toBe(plant(1, 'A') + plant(2, 'B') + plant(3, 'C'))
  })

  test('stops in the second input, and goes on there', async () => {
    user.write('one', plant(1) + plant(2))
    user.write('other', `${plant(3)}{"id":4}`)
    const flags = ['one', 'other', '--on-error', 'stop']
    expect((await user.import(flags)).err).toContain('plants: other:2: ')
    user.write('other', plant(3) + plant(4))
    expect(await user.import(flags)).toMatchObject({ code: 0 })
    expect(await user.list()).toBe([1, 2, 3, 4].map((id) => plant(id)).join(''))
  })

  test('stops after many portions exactly before the record', async () => {
    const many = Array.from({ length: 120_000 }, (_, id) => plant(id))
    user.write('plants', [...many.slice(0, 100_000), plant(5), ...many.slice(100_000)].join(''))
    const { code, summary: told } = await user.import(['plants', '--on-error', 'stop'])
    expect({ code, told }).toEqual({ code: 6, told: summary({ created: 100_000, refused: 1, reasons: { 409: 1 } }) })
    expect((await user.list()) === many.slice(0, 100_000).join('')).toBe(true)
  })

  test.each([
    ['stdin', ['--on-error', 'stop'], `${plant(1)}{"id":2}\n`],
    ['no journal', ['plants', '--no-journal', '--on-error', 'stop'], undefined],
    ['--check', ['plants', '--check', '--on-error', 'stop'], undefined],
    ['--atomic', ['plants', '--atomic', '--on-error', 'stop'], undefined],
  ])('does not promise to go on where nothing is kept for that: %s', async (_, flags, stdin) => {
    user.write('plants', `${plant(1)}{"id":2}\n`)
    const { code, err } = await user.import(flags, stdin === undefined ? {} : { stdin })
    expect({ code, promises: err.includes('it goes on there') }).toEqual({ code: 6, promises: false })
  })

  test.each([[[]], [['--if-exists', 'error']]])('with --check stops too, and creates nothing', async (flags) => {
    user.write('plants', `${plant(1)}{"id":2}\n{"id":3}\n`)
    expect(await user.import(['plants', '--check', '--on-error', 'stop', ...flags])).toMatchObject({
      code: 6,
      summary: { valid: 1, refused: 1 },
    })
    expect(user.has('plants.db')).toBe(false)
  })
})

describe('--max-errors', () => {
  const many = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => plant(from + index)).join('')
  const bad = '{"id":-1}\n'

  test('stops where so many ids exist', async () => {
    user.write('plants', many(1, 20_000))
    await user.import(['plants'])
    const { summary: told } = await user.import(['plants', '--max-errors', '3'])
    expect(told).toEqual(summary({ refused: 3, reasons: { 409: 3 } }))
  })

  test('lets fewer pass', async () => {
    user.write('plants', bad + plant(1) + bad + plant(2))
    expect(await user.import(['plants', '--max-errors', '3'])).toMatchObject({ code: 6, summary: { created: 2, refused: 2 } })
  })

  test('stops after as many', async () => {
    user.write('plants', bad.repeat(5) + many(0, 150_000))
    const { code, summary: told, err } = await user.import(['plants', '--max-errors', '5'])
    expect({ code, told }).toMatchObject({ code: 6, told: { created: 0, refused: 5 } })
    expect(err).toContain('5 plants were rejected, and the import stopped there')
  })

  test('lets the same command go on, until as many more are refused', async () => {
    user.write('plants', bad.repeat(2) + many(0, 150_000) + bad)
    expect(await user.import(['plants', '--max-errors', '2'])).toMatchObject({ code: 6, summary: { refused: 2 } })
    expect(await user.import(['plants', '--max-errors', '2'])).toMatchObject({ code: 6, summary: { created: 150_000, refused: 3 } })
  })

  test('reached in the last portion has stopped nothing', async () => {
    user.write('plants', bad + plant(1) + bad)
    const { err } = await user.import(['plants', '--max-errors', '2'])
    expect(err).not.toContain('stopped there')
    const { err: again } = await user.import(['plants', '--max-errors', '2'])
    expect(again).not.toContain('Going on')
  })

  test('does not call for mending what is behind the place where it goes on', async () => {
    user.write('plants', bad.repeat(5) + many(0, 150_000))
    expect((await user.import(['plants', '--max-errors', '5'])).err).not.toContain(goOn)
  })
})
