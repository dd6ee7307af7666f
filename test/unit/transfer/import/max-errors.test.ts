import { beforeEach, expect, test } from 'vitest'
import { fc } from '../../../helpers/fast-check.js'
import { Importer, lines, plant } from '../../../helpers/imports.js'
import { rounds } from '../../../helpers/rounds.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

/** `!` is not JSON, and a quote that is not closed in CSV. */
const json = (id: string) => `{"id":${id === 'x' ? '"x"' : id},"name":"P"}`

/** The text of records with these ids, and the lines where they begin. */
const formats: Record<string, (ids: string[]) => { text: string; lineOf: (index: number) => number }> = {
  ndjson: (ids) => ({ text: ids.map((id) => `${json(id)}\n`).join(''), lineOf: (index) => index + 1 }),
  csv: (ids) => ({
    text: ['id,name', ...ids.map((id) => (id === '!' ? '!,"P' : `${id},P`)), ''].join('\n'),
    lineOf: (index) => index + 2,
  }),
  array: (ids) => ({ text: `[${ids.map(json).join(',\n')}]`, lineOf: (index) => index + 1 }),
  values: (ids) => ({ text: ids.map(json).join('').replaceAll(',', ',\n'), lineOf: (index) => index + 1 }),
}

test.each(Object.keys(formats))(
  'an import of %s stops after --max-errors records, and the same command resumes after them',
  { timeout: rounds(60_000) },
  async (format) => {
    const record = fc.oneof(
      fc.integer({ min: 1, max: 6 }).map(String),
      fc.constantFrom('x', '99', ...(/csv|ndjson/.test(format) ? '!' : '')),
    )
    const compare = async (some: string[], limit: number) => {
      user = new Importer()
      await user.run('create --id 99 --name P')
      const ids = [...some, '1000']
      const { text, lineOf } = formats[format]?.(ids) ?? { text: '', lineOf: Number }
      user.write('plants', text)
      const created = new Set<string>()
      const rejected: number[] = []
      let inRun = 0
      for (const [index, id] of ids.entries()) {
        if (/[x!]|99/.test(id) || created.has(id)) {
          rejected.push(index)
          inRun += 1
        } else created.add(id)
        if (inRun < limit && index < ids.length - 1) continue
        const run = await user.import(`plants --rejects bad --max-errors ${limit}`)
        const isStopped = index < ids.length - 1
        const { 400: broken = 0, 409: exist = 0, 422: invalid = 0 } = run.rejected ?? {}
        expect({ created: run.created ?? 0, rejected: broken + exist + invalid }).toEqual({
          created: created.size,
          rejected: rejected.length,
        })
        expect(
          run.err.includes('and the import stopped there\n  Run the same command again to resume after them'),
        ).toBe(isStopped)
        inRun = 0
      }
      expect(user.journals).toEqual([])
      if (rejected.length > 0) expect(user.reasons('bad').map(({ line }) => line)).toEqual(rejected.map(lineOf))
      const all = [...created, '99'].map(Number).toSorted((one, other) => one - other)
      expect(await user.list()).toBe(all.map((id) => plant(id, 'P')).join(''))
    }
    const few = fc.array(record, { minLength: 1, maxLength: 10 })
    await fc.assert(fc.asyncProperty(few, fc.integer({ min: 1, max: 3 }), compare), { numRuns: rounds(25) })
  },
)

test('an import that reaches --max-errors in the last record is done', async () => {
  user.write('plants', `{"id":-1}\n${plant(1)}{"id":-1}\n`)
  expect((await user.import('plants --max-errors 2')).err).not.toContain('stopped there')
  expect((await user.import('plants --max-errors 2')).err).not.toContain('Resuming')
})

test('each record counts once over the runs of several chunks', async () => {
  const plants = Array.from({ length: 12_000 }, (_, id) => plant(id))
  user.write('plants', [...plants.slice(0, 10_000), plant(5), ...plants.slice(10_000)].join(''))
  expect(await user.import('plants --max-errors 1')).toMatchObject({ created: 10_000, rejected: { 409: 1 } })
  expect((await user.list()) === plants.slice(0, 10_000).join('')).toBe(true)
  expect(await user.import('plants --max-errors 1')).toMatchObject({ created: 12_000, rejected: { 409: 1 } })
  expect((await user.list()) === plants.join('')).toBe(true)
})

test('assigned ids go on in the second input', async () => {
  user.write('one', '{"name":"A"}\n')
  user.write('other', '{"nmae":"B"}\n{"name":"C"}\n')
  expect((await user.import('one other --max-errors 1 --id-from 1')).err).toContain('plants: other:1: ')
  expect(await user.import('one other --max-errors 1 --id-from 1')).toMatchObject({ created: 2, rejected: { 422: 1 } })
  expect(lines(await user.list())).toEqual(['{"id":1,"name":"A"}', '{"id":3,"name":"C"}'])
})

test.each(['--dry-run', '--atomic'])('%s stops, too, and creates nothing', async (flag) => {
  const stdin = ['id,name', '1,A', '1,A', 'x,Bad', '2,A', 'x,Bad', ''].join('\n')
  expect(await user.import(`${flag} --max-errors 2`, stdin)).toMatchObject({ rejected: { 409: 1, 422: 1 } })
  expect(user.has('data')).toBe(false)
})
