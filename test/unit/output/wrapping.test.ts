import { expect, test } from 'vitest'
import { runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const wide = ['create', '--id', '99999999999999999999', '--name', 'Fern']
const message = 'id must be an integer from -9223372036854775808 to 9223372036854775807, but was "99999999999999999999"'

test('an error is wrapped at spaces on a terminal, and nowhere else', async () => {
  const { err } = await runPlants(wide, { terminals: ['stderr'], columns: 60, env: { NO_COLOR: '1' } })
  expect(err.split('\n').slice(0, 3)).toEqual([
    'plants: id must be an integer from -9223372036854775808 to',
    '  9223372036854775807, but was "99999999999999999999"',
    '  Correct the flags, or read JSON from a file with --file',
  ])
  expect((await runPlants(wide)).err.split('\n')[0]).toBe(`plants: ${message}`)
})

test('an error is wrapped by columns: two for a wide character, none for a combining mark', async () => {
  const word = '苗木苗e\u0301' // 7 columns
  const name = Array(20).fill(word).join(' ')
  const shown = async (text: string) => {
    const world = { terminals: ['stderr' as const], columns: 42, env: { NO_COLOR: '1' } }
    const { err } = await runPlants(['list', '--sort', text], world)
    return err.split('\n').slice(0, 2)
  }
  const start = 'plants: --sort must be one of id, name,'
  expect(await shown(name)).toEqual([start, `  tag, but was "${Array(3).fill(word).join(' ')}`])
  expect(await shown('x'.repeat(7))).toEqual([start, '  tag, but was "xxxxxxx"'])
})

test('a command in a hint stays one line, which can be copied', async () => {
  const store = `./${'a'.repeat(60)}.db`
  const { err } = await runPlants(['delete', '1,2', '--yes'], { terminals: ['stderr'], columns: 40, env: { NO_COLOR: '1' } })
  expect(Math.max(...err.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40)
  const hint = `  Look at it with: plants get 1 --store ${store}`
  const create = ['create', '--id', '1', '--name', 'Fern', '--store', store]
  const folder = temporaryFolder()
  await runPlants(create, { cwd: folder })
  expect((await runPlants(create, { cwd: folder, terminals: ['stderr'], columns: 40, env: { NO_COLOR: '1' } })).err.split('\n')).toContain(
    hint,
  )
})
