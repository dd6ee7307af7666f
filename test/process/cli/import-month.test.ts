import { expect, test } from 'vitest'
import type { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createSandboxWithFile, down, enter, noColor } from './import-dialogue-steps.js'

// A list comes again, on a terminal: one question about what differs, and a last one with all
// numbers.

const header = 'id,name,tag'
const buildRows = (count: number, name = 'Plant') =>
  Array.from({ length: count }, (_, index) => `${index + 1},${name} ${index + 1},Bed`)

const write = (user: Sandbox, rows: readonly string[]) =>
  user.write('list.csv', `${[header, ...rows].join('\n')}\n`)

async function createNursery(count: number): Promise<Sandbox> {
  const user = createSandboxWithFile('')
  write(user, buildRows(count))
  await user.run('import list.csv')
  return user
}

const readStore = async (user: Sandbox) => (await user.run('list -o csv')).out.trim().split('\n')

/** Twenty new rows at the top, ten changed, one removed. */
function editMonth(rows: readonly string[]): string[] {
  const newRows = Array.from({ length: 20 }, (_, index) => `${index + 1001},New ${index},Bed`)
  const changedRows = rows.slice(1, 11).map((row) => row.replace('Bed', 'Border'))
  return [...newRows, ...changedRows, ...rows.slice(11)]
}

test('a month is imported by Enter, and what it lacks stays', async () => {
  const user = await createNursery(300)
  const month = editMonth(buildRows(300))
  write(user, month)
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['differ from the list: 10. Plants that the list lacks: 1', enter])
  await session.answer(['Import 30 of 319 plants (20 new, 10 changed)', enter])
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  expect(screen).toContain('… and 5 more would be updated')
  expect(screen).toContain('plants import list.csv --if-exists update')
  expect(await readStore(user)).toHaveLength(321)
})

test('a month makes the store equal to the list only by more than Enter', async () => {
  const user = await createNursery(300)
  const month = editMonth(buildRows(300))
  write(user, month)
  const start = () => user.terminal('import list.csv', noColor)
  const first = start()
  await first.answer(['Plants that the list lacks: 1', `${down}${enter}`])
  await first.answer(['(20 new, 10 changed, 1 deleted)', enter])
  expect((await first.ended).code).toBe(130)
  expect(await readStore(user)).toHaveLength(301)
  const second = start()
  await second.answer(['Plants that the list lacks: 1', `${down}${enter}`])
  await second.answer(['(20 new, 10 changed, 1 deleted)', `y${enter}`])
  const { code, screen } = await second.ended
  expect(code).toBe(0)
  expect(screen).toContain('plants import list.csv --sync')
  expect(screen).not.toContain('--sync --yes')
  const sorted = month.toSorted(
    (one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10),
  )
  expect(await readStore(user)).toEqual([header, ...sorted])
})

test('a short list asks nothing about the other plants of the store', async () => {
  const user = await createNursery(300)
  write(user, buildRows(30))
  const { code, screen } = await user.terminal('import list.csv', noColor).ended
  expect(code).toBe(0)
  expect(screen).not.toContain('?')
})

test('another list with the same numbers changes nothing by Enter', async () => {
  const user = await createNursery(300)
  const before = await readStore(user)
  write(user, buildRows(280, 'Other'))
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['differ from the list: 280', enter])
  expect((await session.ended).code).toBe(0)
  expect(await readStore(user)).toEqual(before)
})

test('--sync asks before it deletes, and names what is rejected', async () => {
  const user = await createNursery(4)
  write(user, [...buildRows(3), 'x,Fern,', ',Iris,', ',Moss,'])
  const { code, screen } = await user.terminal('import list.csv --sync', noColor).ended
  expect(code).toBe(6)
  expect(screen).not.toContain('Import ')
  write(user, [...buildRows(3), '9,Fern,'])
  const session = user.terminal('import list.csv --sync', noColor)
  await session.answer(['Import 1 of 4 plants (1 new, 1 deleted)', `y${enter}`])
  expect((await session.ended).code).toBe(0)
  expect(await readStore(user)).toEqual([header, ...buildRows(3), '9,Fern,'])
})
