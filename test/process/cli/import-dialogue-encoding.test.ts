import { expect, test } from 'vitest'
import { toJsonResult } from '../../helpers/sandbox/sandbox.js'
import {
  columns,
  createSandboxWithFile,
  down,
  enter,
  latin1,
  noColor,
  storedPlants,
  table,
} from './import-dialogue-steps.js'

// The dialogue of an import asks for the encoding of its file.

test('an import asks for the encoding and the columns, and stores what Enter proposes', async () => {
  const user = createSandboxWithFile(latin1(table))
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['Is that right?', enter], ...columns, ['Import 2 plants?', enter])
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  expect(screen).toContain('list.csv is not UTF-8. Read as windows-1252, it begins:')
  expect(screen).toMatch(/ {2}Nr\. {2}Botanischer Name {2}Standort\s+31 {2}Süßkirsche {2}Südbeet/)
  expect(screen).toContain('Nr. (31, 32)')
  expect(await user.run('list')).toEqual(storedPlants)
})

test('a user chooses another encoding by how a line reads in it', async () => {
  const user = createSandboxWithFile(Buffer.from('Nr;Name\n1;\xaf\xf3\xbfa', 'latin1'))
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['Is that right?', down + enter], ['Which encoding?', 'windows-1250'])
  await session.answer(['❯ windows-1250 (Central Europe): 1;Żóża', enter])
  await session.answer(['the id?', enter], ['Import 1 plant?', enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult({ id: 1, name: 'Żóża' }))
})

test('an import does not read a file of UTF-8 in the encoding of another file', async () => {
  const user = createSandboxWithFile(latin1(table))
  user.write('more.csv', table)
  const session = user.terminal('import list.csv more.csv', noColor)
  await session.answer(['Is that right?', enter], ...columns)
  const { code, screen } = await session.ended
  expect([code, screen.includes('more.csv is UTF-8, not windows-1252')]).toEqual([2, true])
})
