import { expect, test } from 'vitest'
import { parseDuration, parseSize } from '../../../src/platform/values.js'
import { runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const page = (await runPlants(['help', 'formats'])).out

/** What stands under a title, as it stands in a file. */
function sample(title: string): string {
  const [, lines = ''] = new RegExp(`^${title}:\\n((?: {2}.*\\n)+)`, 'm').exec(page) ?? []
  return lines.replaceAll(/^ {2}/gm, '')
}

const plantsOfThePage = '{"id":1,"name":"Fern","tag":"shade"}\n{"id":9007199254740993,"name":"Moss"}\n'

test('flags give the plants that the page speaks of', async () => {
  const env = { PLANTS_DATA_DIR: temporaryFolder() }
  for (const line of sample('As flags of plants create').trim().split('\n'))
    expect(await runPlants(['create', ...line.split(' ')], { env })).toMatchObject({ code: 0, err: '' })
  expect(await runPlants(['export'], { env })).toEqual({ code: 0, out: plantsOfThePage, err: '' })
})

test.each(['ndjson', 'csv'])('%s is read and written as the page shows it', async (format) => {
  const text = sample(`As ${format}`)
  const env = { PLANTS_DATA_DIR: temporaryFolder() }
  expect(await runPlants(['import', '--format', format], { env, stdin: text })).toMatchObject({ code: 0 })
  expect(await runPlants(['export'], { env })).toEqual({ code: 0, out: plantsOfThePage, err: '' })
  expect((await runPlants(['export', '--output', format], { env })).out).toBe(text)
})

test('an error is what the page shows', async () => {
  const env = { PLANTS_DATA_DIR: temporaryFolder() }
  const fern = ['create', '--id', '1', '--name', 'Fern']
  await runPlants(fern, { env })
  expect(await runPlants([...fern, '--output', 'json'], { env })).toEqual({
    code: 1,
    out: '',
    err: sample('An error as JSON'),
  })
})

test('durations and sizes are what the page calls so', () => {
  const valuesOf = (term: string) => new RegExp(`^ {2}${term} +(.*);`, 'm').exec(page)?.[1]?.split(/, | or /) ?? []
  expect(valuesOf('a duration').map((text) => parseDuration('--timeout', text))).toEqual([
    500, 30_000, 120_000, 3_600_000, 7_776_000_000,
  ])
  expect(valuesOf('a size').map((text) => parseSize('--body-limit', text))).toEqual([16_384, 1_048_576, 1_073_741_824])
  expect([parseDuration('--timeout', '2'), parseSize('--body-limit', '2')]).toEqual([2000, 2])
})

test.each([
  [['1.0', '1e3'], 0],
  [['"1"', '1.5', '+1', '007'], 2],
])('ids such as %j end with %d', async (ids, code) => {
  for (const id of ids) {
    expect(page).toContain(id)
    const result = await runPlants(['create', '--id', id, '--name', 'Fern'], {
      env: { PLANTS_DATA_DIR: temporaryFolder() },
    })
    expect({ id, code: result.code }).toEqual({ id, code })
  }
})
