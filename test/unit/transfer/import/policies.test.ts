import { chmodSync, readdirSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { complaints, Importing, imported, lines, summary } from '../../../helpers/importing.js'

let user: Importing

beforeEach(() => {
  user = new Importing()
})

const goOn = 'Fix it, then run the same command again to resume from it'
const resuming = 'Resuming an interrupted import'
const plant = (id: number | string, name = `Plant ${id}`, tag?: string) =>
  `${JSON.stringify({ id: 0, name, tag }).replace('0', String(id))}\n`

describe('--if-exists', () => {
  const stored = [plant(1, 'A', 'x'), plant(2, 'B'), plant(3, 'C', '')].join('')
  const again = [
    plant(1, 'A', 'x'),
    plant(2, 'B', ''),
    plant(3, 'C'),
    plant(4, 'D'),
    plant(4, 'D'),
    plant(4, 'E'),
  ].join('')
  const changed = [plant(1, 'A', 'x'), plant(2, 'B', ''), plant(3, 'C', ''), plant(4, 'E')].join('')

  test.each([
    ['error', { created: 1, rejected: 5, reasons: { 409: 5 } }, [1, 2, 3, 5, 6]],
    ['skip', { created: 1, skipped: 5 }, []],
    ['same', { created: 1, skipped: 2, rejected: 3, reasons: { 409: 3 } }, [2, 3, 6]],
    ['update', { created: 1, updated: 2, skipped: 3 }, []],
  ])('%s', async (policy, counts, rejected) => {
    await user.import([], { stdin: stored })
    const { code, summary: told, err } = await user.import(['--if-exists', policy], { stdin: again })
    expect({ code, told }).toEqual({ code: rejected.length ? 6 : 0, told: summary(counts) })
    expect(Array.from(err.matchAll(/stdin:(\d+): /g), ([, line]) => Number(line))).toEqual(rejected)
    expect(await user.list()).toBe(policy === 'update' ? changed : stored + plant(4, 'D'))
  })

  test.each([
    ['error', { dryRun: true, created: 1, rejected: 5, reasons: { 409: 5 } }],
    ['skip', { dryRun: true, created: 1, skipped: 5 }],
    ['same', { dryRun: true, created: 1, skipped: 2, rejected: 3, reasons: { 409: 3 } }],
    ['update', { dryRun: true, created: 1, updated: 2, skipped: 3 }],
  ])('%s, and --dry-run says the same', async (policy, counts) => {
    await user.import([], { stdin: stored })
    const { summary: told } = await user.import(['--if-exists', policy, '--dry-run'], { stdin: again })
    expect(told).toEqual({ updated: 0, skipped: 0, rejected: 0, reasons: {}, unknown: 0, ...counts })
    expect(await user.list()).toBe(stored)
  })

  test.each([
    ['skip', { created: 1, skipped: 5 }, 0],
    ['same', { created: 0, skipped: 2, rejected: 3, reasons: { 409: 3 } }, 6],
    ['update', { created: 1, updated: 2, skipped: 3 }, 0],
  ])('%s goes with --atomic', async (policy, counts, code) => {
    await user.import([], { stdin: stored })
    expect(await user.import(['--if-exists', policy, '--atomic'], { stdin: again })).toMatchObject({
      code,
      summary: summary(counts),
    })
    expect(await user.list()).toBe(policy === 'update' ? changed : code ? stored : stored + plant(4, 'D'))
  })

  test.each(['', '--dry-run', '--atomic', '--id-from=2'])(
    'same says that a plant differs, and how to replace it: %s',
    async (flag) => {
      await user.import([], { stdin: stored })
      const { err } = await user.import(['--if-exists', 'same', '--output', 'json', ...(flag ? [flag] : [])], {
        stdin: plant(2, 'X'),
      })
      const [reason, end] = lines(err).map((line) => JSON.parse(line))
      expect(reason).toMatchObject({
        error: 409,
        message: expect.stringMatching(/(^|: )A different plant with id 2 already exists$/),
      })
      expect(end).toMatchObject({
        error: 409,
        hint: expect.stringContaining(
          `For ids that exist, use --if-exists update${flag === '--id-from=2' ? ', without --id-from' : ''}. `,
        ),
      })
    },
  )

  test('update says how many plants it has replaced', async () => {
    await user.import([], { stdin: stored })
    const { out } = await user.run(['import', '--if-exists', 'update', '--output', 'text'], { stdin: again })
    expect(out).toMatch(/^Read 6 plants in \d+\.\d s: 1 created, 2 updated, 3 skipped\n$/)
  })

  test.each(['--atomic', '--dry-run'])('update %s goes by what the input says last, not by the store', async (flag) => {
    await user.import([], { stdin: stored })
    const { summary: told } = await user.import(['--if-exists', 'update', flag], {
      stdin: plant(2, 'X') + plant(2, 'X') + plant(2, 'B'),
    })
    expect(told).toMatchObject({ updated: 2, skipped: 1 })
    expect(await user.list()).toBe(stored)
  })

  const lacksName = 'Invalid plant: name must be a string, but is missing'
  const corrected = [plant(1, 'A'), plant(2, 'B', 'wet'), plant(3, 'X', ''), plant(4, 'D')].join('')

  test.each([
    [
      'NDJSON',
      '{"id":1,"tag":null}\n{"id":2,"tag":"wet"}\n{"id":9,"tag":"x"}\n{"id":3,"name":"X"}\n{"id":4,"name":"D","tag":null}\n',
      3,
    ],
    [
      'an array',
      '[{"tag":null,"id":1},{"id":2,"tag":"wet"},\n{"id":9,"tag":"x"},{"id":3,"name":"X"},{"id":4,"name":"D","tag":null}]',
      2,
    ],
  ])('update changes what a record has, and nothing else: %s', async (_, stdin, line) => {
    await user.import([], { stdin: stored })
    const counts = { created: 1, updated: 3, skipped: 0, rejected: 1, reasons: { 422: 1 }, unknown: 0 }
    const check = await user.import(['--if-exists', 'update', '--dry-run'], { stdin })
    expect({ code: check.code, summary: check.summary }).toEqual({ code: 6, summary: { dryRun: true, ...counts } })
    const { code, summary: told, err } = await user.import(['--if-exists', 'update', '--rejects', 'bad'], { stdin })
    expect({ code, told }).toEqual({ code: 6, told: summary({ ...counts, rejects: `${user.folder}/bad` }) })
    const message = `${lacksName}, and no plant has id 9`
    expect(err).toContain(`plants: stdin:${line}: ${message}\n`)
    expect(user.reasons('bad')).toMatchObject([{ line, error: 422, message }])
    expect(await user.list()).toBe(corrected)
  })

  test.each(['', '--atomic'])(
    'update leaves alone what the columns of a table do not say, and empties empty cells: %s',
    async (flag) => {
      const flags = ['--if-exists', 'update', ...(flag ? [flag] : [])]
      await user.import([], { stdin: stored + plant(4, 'D', 'y') })
      expect(await user.import(flags, { stdin: 'tag;id\nwet;2\n;1\n"";3\n"";4\n' })).toEqual(
        imported({ updated: 3, skipped: 1 }),
      )
      expect(await user.import(flags, { stdin: 'id,name,note\n3,X\n1,A\n' })).toEqual(
        imported({ updated: 1, skipped: 1 }),
      )
      expect(await user.list()).toBe(corrected.replace('"D"', '"D","tag":""'))
      // a cell is missing, not the column
      expect(await user.import(flags, { stdin: 'id,name,tag\n4,D\n' })).toEqual(imported({ updated: 1 }))
      expect(await user.import([...flags, '--columns', 'id,tag'], { stdin: '3,\n' })).toEqual(imported({ updated: 1 }))
      expect(await user.list()).toBe(corrected.replace(',"tag":""', ''))
    },
  )

  test.each([
    ['update', 'id,name,tag\n1,,x\n', `stdin:2: ${lacksName}`, 6],
    ['update', 'id,nmae\n1,x\n', 'stdin: The header in line 1 has no column name, only "id", "nmae"', 2],
    ['same', 'id,tag\n1,x\n', 'stdin: The header in line 1 has no column name, only "id", "tag"', 2],
    ['skip', '{"id":1,"tag":"x"}\n', `stdin:1: ${lacksName}`, 6],
    ['update', '{"id":1,"name":null}\n', 'stdin:1: Invalid plant: name must be a string, but was null', 6],
    ['update', '{"id":null,"tag":"x"}\n', 'stdin:1: Invalid plant: id must be an integer, but was null', 6],
  ])('%s keeps the rules of what it changes: %o', async (policy, stdin, message, code) => {
    await user.import([], { stdin: stored })
    const result = await user.import(['--if-exists', policy], { stdin })
    expect({ code: result.code, first: lines(result.err)[0] }).toEqual({ code, first: `plants: ${message}` })
    expect(await user.list()).toBe(stored)
  })

  test.each(['error', 'skip', 'same', 'update'])('%s takes null for no tag', async (policy) => {
    const stdin = '{"id":1,"name":"A","tag":null}\n'
    expect(await user.import(['--if-exists', policy], { stdin })).toEqual(imported({ created: 1 }))
    const { summary: told } = await user.import(['--if-exists', policy, '--dry-run'], { stdin })
    expect(told).toMatchObject(policy === 'error' ? { rejected: 1 } : { skipped: 1 })
    expect(await user.list()).toBe(plant(1, 'A'))
  })

  test('counts the first of several with an id, also when ids are in no order', async () => {
    const stdin = [
      plant(5, 'first'),
      plant(3, 'x'),
      plant(5, 'second'),
      plant(-1, 'y'),
      plant(3, 'z'),
      plant(5, 'third'),
    ].join('')
    const { err } = await user.import([], { stdin })
    expect(err).toBe(
      complaints(
        [
          'stdin:3: The id 5 is in the input twice, also in line 1',
          'stdin:5: The id 3 is in the input twice, also in line 2',
          'stdin:6: The id 5 is in the input twice, also in line 1',
        ],
        '3 plants were rejected',
      ),
    )
    expect(await user.list()).toBe(plant(-1, 'y') + plant(3, 'x') + plant(5, 'first'))
  })
})

describe('--dry-run', () => {
  test('finds ids that are twice in the input, and makes no file', async () => {
    user.write('plants', plant(1) + plant(2) + plant(1))
    expect(await user.import(['plants', '--dry-run', '--rejects', 'bad'])).toMatchObject({
      code: 6,
      summary: { dryRun: true, created: 2, rejected: 1, reasons: { 409: 1 } },
    })
    expect(readdirSync(user.folder).toSorted()).toEqual(['bad', 'bad.reasons', 'plants'])
    expect(user.read('bad')).toBe(plant(1))
    expect(user.reasons('bad')).toEqual([
      { file: 'plants', line: 3, error: 409, message: expect.stringContaining('id 1') },
    ])
  })

  test('finds ids that are twice over several inputs', async () => {
    user.write('one', plant(1) + plant(2))
    user.write('other', plant(3) + plant(2))
    const { err } = await user.import(['one', 'other', '--dry-run'])
    expect(err).toMatch(/^plants: other:2: [^\n]*\bid 2\b/)
  })

  test('finds nothing wrong, and says so', async () => {
    user.write('plants', plant(1) + plant(2))
    expect(await user.import(['plants', '--dry-run'])).toEqual({
      code: 0,
      summary: { dryRun: true, created: 2, updated: 0, skipped: 0, rejected: 0, reasons: {}, unknown: 0 },
      err: '',
    })
    expect(readdirSync(user.folder)).toEqual(['plants'])
    expect((await user.run(['import', 'plants', '--dry-run', '--output', 'text'])).out).toMatch(
      /^Would create Plant 1 \(id 1\)\nWould create Plant 2 \(id 2\)\nWould create 2 plants: checked 2 plants in \d+\.\d s(?: \([\d,]+\/s\))?\n$/,
    )
  })

  test('shows what it would change, with what that was: all as NDJSON, and the first 20 as text', async () => {
    await user.import([], { stdin: plant(1, 'A', 'x') + plant(2, 'B') })
    const stdin = `id,name,tag\n1,A,wet\n1,A,\n2,B,\n2,B 2,"a\u2028b"\n3,C,\n`
    const run = (...flags: string[]) =>
      user.run(['import', '--if-exists', 'update', '--dry-run', ...flags], { stdin: stdin })
    const all = lines((await run('--output', 'ndjson')).out)
    expect(all.slice(0, -1)).toEqual([
      '{"dryRun":true,"id":1,"before":{"name":"A","tag":"x"},"after":{"name":"A","tag":"wet"}}',
      '{"dryRun":true,"id":1,"before":{"name":"A","tag":"wet"},"after":{"name":"A"}}',
      '{"dryRun":true,"id":2,"before":{"name":"B"},"after":{"name":"B 2","tag":"a\\u2028b"}}',
      '{"dryRun":true,"id":3,"after":{"name":"C"}}',
    ])
    expect((await run('--output', 'json')).out).toMatch(/^\{"dryRun":true,"created":1,"updated":3,"skipped":1,.*\}\n$/)
    expect(lines((await run('--output', 'text')).out).slice(0, -1)).toEqual([
      'Would update A (id 1): tag "x" → "wet"',
      'Would update A (id 1): tag "wet" → none',
      'Would update B (id 2): name "B" → "B 2", tag none → "a\\u{2028}b"',
      'Would create C (id 3)',
    ])
    expect((await run('--output', 'text', '--quiet')).out).toBe('')
    const many = Array.from({ length: 25 }, (_, index) => `1,A,${index}\n`).join('')
    const { out, err } = await user.run(['import', '--if-exists', 'update', '--dry-run', '--output', 'text'], {
      stdin: `id,name,tag\n${many}`,
    })
    expect({ shown: lines(out).length, err }).toEqual({
      shown: 21,
      err: 'plants: Changes that are not shown: 5. For all: --output ndjson\n',
    })
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
    expect({ code, told }).toMatchObject({ code: 6, told: { created: 0, rejected: 1 } })
    expect(err).toMatch(/\nplants: 1 plant was rejected, so nothing was created\n {2}(?!.*nothing was created)/)
    expect(await user.list()).toBe(plant(7))
  })

  test('makes no store for a rejected input, and says once that nothing was created', async () => {
    const rejected = await user.import(['--atomic', '--store', './new.db'], { stdin: `${plant(1)}{"id":2}\n` })
    const hint = 'Fix the rejected records, then run the same command again'
    expect(rejected).toEqual({
      code: 6,
      summary: summary({ rejected: 1, reasons: { 422: 1 } }),
      err: complaints(
        ['stdin:2: Invalid plant: name must be a string, but is missing'],
        '1 plant was rejected, so nothing was created',
        hint,
      ),
    })
    expect(readdirSync(user.folder)).toEqual([])
    const done = await user.import(['--atomic', '--store', './new.db'], { stdin: plant(1) })
    expect(done).toEqual(imported({ created: 1 }, `plants: Created store ${user.folder}/new.db\n`))
  })

  test.runIf(process.getuid?.() !== 0)(
    'finds out at once that a store cannot be written (needs a user that is not root)',
    async () => {
      await user.import([], { stdin: plant(7) })
      chmodSync(user.store, 0o400)
      const { code, summary: told } = await user.import(['--atomic'], { stdin: '{"id":1}\n' })
      expect({ code, told }).toEqual({ code: 4, told: undefined })
    },
  )

  test('does not send people to a rejects file that alone would be half of it', async () => {
    const run = async (...flags: string[]) => (await user.import([...flags], { stdin: `${plant(1)}{"id":2}\n` })).err
    expect(await run('--rejects', 'bad')).toContain('then: plants import')
    expect(await run('--atomic', '--rejects', 'half')).not.toContain('then: plants import')
  })
})

describe('--max-errors', () => {
  const many = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => plant(from + index)).join('')
  const bad = '{"id":-1}\n'

  test('stops where so many ids exist', async () => {
    user.write('plants', many(1, 20_000))
    await user.import(['plants'])
    const { summary: told } = await user.import(['plants', '--max-errors', '3'])
    expect(told).toEqual(summary({ rejected: 3, reasons: { 409: 3 } }))
  })

  test('lets fewer pass', async () => {
    user.write('plants', bad + plant(1) + bad + plant(2))
    expect(await user.import(['plants', '--max-errors', '3'])).toMatchObject({
      code: 6,
      summary: { created: 2, rejected: 2 },
    })
  })

  test('stops after as many', async () => {
    user.write('plants', bad.repeat(5) + many(0, 150_000))
    const { code, summary: told, err } = await user.import(['plants', '--max-errors', '5'])
    expect({ code, told }).toMatchObject({ code: 6, told: { created: 0, rejected: 5 } })
    expect(err).toContain('5 plants were rejected, and the import stopped there')
  })

  test('lets the same command go on, until as many more are rejected', async () => {
    user.write('plants', bad.repeat(2) + many(0, 150_000) + bad)
    expect(await user.import(['plants', '--max-errors', '2'])).toMatchObject({ code: 6, summary: { rejected: 2 } })
    const again = await user.import(['plants', '--max-errors', '2'])
    expect(again).toMatchObject({ code: 6, summary: { created: 150_000, rejected: 3 } })
    expect(again.err).toContain(resuming)
  })

  test('reached in the last portion has stopped nothing', async () => {
    user.write('plants', bad + plant(1) + bad)
    const { err } = await user.import(['plants', '--max-errors', '2'])
    expect(err).not.toContain('stopped there')
    const { err: again } = await user.import(['plants', '--max-errors', '2'])
    expect(again).not.toContain(resuming)
  })

  test('does not call for mending what is behind the place where it goes on', async () => {
    user.write('plants', bad.repeat(5) + many(0, 150_000))
    expect((await user.import(['plants', '--max-errors', '5'])).err).not.toContain(goOn)
  })

  test('stops exactly after the record, and counts each record once over its runs', async () => {
    const plants = Array.from({ length: 120_000 }, (_, id) => plant(id))
    user.write('plants', [...plants.slice(0, 100_000), plant(5), ...plants.slice(100_000)].join(''))
    const stopped = await user.import(['plants', '--max-errors', '1'])
    expect(stopped).toMatchObject({ code: 6, summary: summary({ created: 100_000, rejected: 1, reasons: { 409: 1 } }) })
    expect((await user.list()) === plants.slice(0, 100_000).join('')).toBe(true)
    const done = await user.import(['plants', '--max-errors', '1'])
    expect(done).toMatchObject({ code: 6, summary: summary({ created: 120_000, rejected: 1, reasons: { 409: 1 } }) })
    expect((await user.list()) === plants.join('')).toBe(true)
  })

  test('keeps the rejected records of all its runs', async () => {
    user.write('plants', `${plant(1)}{"id":2}\n${plant(3)}{"id":4}\n`)
    const flags = ['plants', '--max-errors', '1', '--rejects', 'bad']
    await user.import(flags)
    expect(user.read('bad')).toBe('{"id":2}\n')
    await user.import(flags)
    expect(user.read('bad')).toBe('{"id":2}\n{"id":4}\n')
    expect(user.reasons('bad').map(({ line }) => line)).toEqual([2, 4])
  })

  test('goes on with the assigned ids, in the second input', async () => {
    user.write('one', '{"name":"A"}\n')
    user.write('other', '{"nmae":"B"}\n{"name":"C"}\n')
    const flags = ['one', 'other', '--max-errors', '1', '--id-from', '1']
    expect((await user.import(flags)).err).toContain('plants: other:1: ')
    expect(await user.import(flags)).toMatchObject({ code: 6, summary: { created: 2, rejected: 1 } })
    expect(await user.list()).toBe(plant(1, 'A') + plant(3, 'C'))
  })

  test.each([['--dry-run'], ['--atomic']])('stops with %s too, and creates nothing', async (flag) => {
    user.write('plants', `${plant(1)}{"id":2}\n{"id":3}\n`)
    expect(await user.import(['plants', flag, '--max-errors', '1'])).toMatchObject({
      code: 6,
      summary: { rejected: 1 },
    })
    expect(user.has('plants.db')).toBe(false)
  })
})
