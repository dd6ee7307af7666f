import { expect, test } from 'vitest'
import { parseDuration, parseSize } from '../../../src/platform/values.js'
import { runPlants } from '../../helpers/run.js'
import { printed, World } from '../../helpers/world.js'

const page = (await runPlants(['help', 'formats'])).out

/** What the page has under a title, as it would be in a file. */
function sample(title: string): string {
  const [, lines = ''] = new RegExp(`^${title}:\\n((?: {2}.*\\n)+)`, 'm').exec(page) ?? []
  return lines.replaceAll(/^ {2}/gm, '')
}

const plantsOfThePage = printed('{"id":1,"name":"Fern","tag":"shade"}\n{"id":9007199254740993,"name":"Moss"}\n')

test('flags give the plants of the page', async () => {
  const user = new World()
  for (const line of sample('As flags of plants create').trim().split('\n'))
    expect(await user.run(`create ${line}`)).toMatchObject({ code: 0, err: '' })
  expect(await user.run('export')).toEqual(plantsOfThePage)
})

test.each(['ndjson', 'csv'])('%s is read and written as the page shows it', async (format) => {
  const user = new World()
  const stdin = sample(`As ${format}`)
  expect((await user.run(`import --format ${format}`, { stdin })).code).toBe(0)
  expect(await user.run('export')).toEqual(plantsOfThePage)
  expect((await user.run(`export --output ${format}`)).out).toBe(stdin)
})

test('an error is what the page shows', async () => {
  const user = new World()
  await user.run('create --id 1 --name Fern')
  const { err } = await user.run('create --id 1 --name Fern --output json')
  expect(err).toBe(sample('An error as JSON'))
})

test('durations and sizes are what the page calls so', () => {
  const valuesOf = (term: string) => new RegExp(`^ {2}${term} +(.*);`, 'm').exec(page)?.[1]?.split(/, | or /) ?? []
  const durations = valuesOf('a duration').map((text) => parseDuration('--timeout', text))
  expect(durations).toEqual([500, 30_000, 120_000, 3_600_000, 7_776_000_000])
  expect(valuesOf('a size').map((text) => parseSize('--body-limit', text))).toEqual([16_384, 1_048_576, 1_073_741_824])
  expect([parseDuration('--timeout', '2'), parseSize('--body-limit', '2')]).toEqual([2000, 2])
})

test.each([
  ['1.0', 0],
  ['1e3', 0],
  ['"1"', 2],
  ['1.5', 2],
  ['+1', 2],
  ['007', 2],
])('the id %s: exit code %i, as the page says', async (id, code) => {
  expect(page).toContain(id)
  expect((await new World().run(`create --id ${id} --name Fern`)).code).toBe(code)
})
