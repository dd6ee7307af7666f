import { expect, test } from 'vitest'
import { buildPlantLine, nextChunk } from '../../helpers/sandbox/import-sandbox.js'
import { getStorePath, serve, testToken } from '../../helpers/scripted-server/service.js'
import { createSandboxWithFile, enter, latin1, noColor } from './import-dialogue-steps.js'

// An interrupted import is resumed with the answers that its dialogue got.

test('an import into a service asks its questions, too, and is resumed with the answers', async () => {
  const service = await serve()
  const rest = `${nextChunk}{"nr":7,"latin":"Malus"}\n`
  const user = createSandboxWithFile(
    `{"nr":4,"latin":"Rosa"}\n{"nr":"x","latin":"Moss"}\n${rest}`,
    'a.ndjson',
  )
  const command = ['import', 'a.ndjson', '--store', service.address]
  const env = { ...noColor, PLANTS_TOKEN: testToken }
  const session = user.terminal([...command, '--max-errors', '1'], env)
  await session.answer(['the id?', enter], ['the name?', enter])
  await session.answer(['Import 2 plants into ', enter])
  expect((await session.ended).code).toBe(6)
  const { code, screen } = await user.terminal(command, env).ended
  expect([code, screen.includes('?')]).toEqual([6, false])
  expect(screen).toContain('Resuming an interrupted import after 2 plants')
  const { out } = await user.run(['list', '--store', getStorePath(service)])
  expect(out).toBe(`${buildPlantLine(4, 'Rosa')}${buildPlantLine(7, 'Malus')}`)
})

test('an interrupted import is resumed with the answers of its dialogue', async () => {
  const big = '9007199254740993'
  const first = `{"nr":${big},"latin":"Rosa"}\n{"nr":"x","latin":"Moss"}\n`
  const user = createSandboxWithFile(
    `${first}${nextChunk}{"nr":7,"latin":"Malus"}\n`,
    'list.ndjson',
  )
  const session = user.terminal('import list.ndjson --max-errors 1', noColor)
  await session.answer(['the id?', enter], ['the name?', enter], ['Import 2 plants?', enter])
  const interrupted = await session.ended
  expect([interrupted.code, interrupted.screen.includes(`nr (${big}, x, 7)`)]).toEqual([6, true])
  const { code, screen } = await user.terminal('import list.ndjson', noColor).ended
  expect([code, screen.includes('?')]).toEqual([6, false])
  expect(screen).toContain('continues with the answers that you gave before')
  expect(screen).toContain('Resuming an interrupted import after 2 plants')
  expect((await user.run('list')).out).toBe(
    `${buildPlantLine(7, 'Malus')}${buildPlantLine(big, 'Rosa')}`,
  )
})

test('an interrupted import with answers is rejected if its file has changed since', async () => {
  const rest = `${nextChunk}{"nr":7,"latin":"Malus"}\n`
  const start = '{"nr":3,"latin":"Acer"}\n'
  const user = createSandboxWithFile(`${start}{"nr":"x","latin":"Rosa"}\n${rest}`, 'list.ndjson')
  const session = user.terminal('import list.ndjson --max-errors 1', noColor)
  await session.answer(['the id?', enter], ['the name?', enter], ['Import 2 plants?', enter])
  await session.ended
  user.write('list.ndjson', `${start}{"nr":4,"latin":"Rosa"}\n${rest}`)
  const { code, screen } = await user.terminal('import list.ndjson', noColor).ended
  expect([code, screen.includes('changed since')]).toEqual([2, true])
})

test('an import does not take typed options from an interrupted import', async () => {
  const farRow = `${'\n'.repeat(1_000_000)}7;Malus\n` // in another chunk
  const rows = `Nr;Art\n1;Rosé\nx;Moss\n${farRow}`
  const user = createSandboxWithFile(latin1(rows))
  const typed = 'import list.csv --encoding windows-1252'
  const session = user.terminal(`${typed} --max-errors 1`, noColor)
  await session.answer(['the id?', enter], ['the name?', enter], ['Import 2 plants?', enter])
  expect((await session.ended).code).toBe(6)
  const without = await user.terminal('import list.csv', noColor).ended
  expect([without.code, without.screen.includes('not UTF-8')]).toEqual([2, true])
  expect((await user.terminal(typed, noColor).ended).code).toBe(6)
  expect((await user.run('count')).out).toBe('2\n')
})

test('a complete import that has generated ids is recognized before its dialogue begins', async () => {
  const user = createSandboxWithFile('Common name,Family\nRosa,Rosaceae\n')
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['the id?', enter], ['the name?', enter], ['the tag?', enter])
  await session.answer(['Import 1 plant?', enter])
  expect((await session.ended).code).toBe(0)
  const { code, screen } = await user.terminal('import list.csv', noColor).ended
  expect([code, screen.includes('?')]).toEqual([2, false])
  expect(screen).toContain('The same input was imported before')
})
