import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { plants } from './helpers/process.js'
import { temporaryFolder } from './helpers/temporary.js'
import { terminal } from './helpers/terminal.js'

test('asks for id, name and tag, and lets a wrong id be mended', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create'], folder)
  await session.see('id')
  session.type('1.5\r')
  await session.see('an integer from')
  session.type('\x7f\x7f\x7f42\r')
  await session.see('name')
  session.type('Fern\r')
  await session.see('tag')
  session.type('\r')
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  expect(stripVTControlCharacters(screen)).toContain('Planted Fern (id 42)')
  expect(await plants(['list'], folder)).toEqual({ code: 0, out: '{"id":42,"name":"Fern"}\n', err: '' })
})

test.each([
  ['Ctrl-C', '\x03', 130],
  ['Ctrl-D', '\x04', 130],
])('%s leaves with %s, and nothing is stored', async (_, key, exitCode) => {
  const folder = temporaryFolder()
  const session = terminal(['create', '--id', '1'], folder)
  await session.see('name')
  session.type(key)
  expect((await session.ended).code).toBe(exitCode)
  expect((await plants(['get', '1'], folder)).code).toBe(1)
})

test('keeps what was pasted in one go', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create'], folder)
  await session.see('id')
  session.type('7\rMoss\rwet\r')
  expect((await session.ended).code).toBe(0)
  expect((await plants(['get', '7'], folder)).out).toBe('{"id":7,"name":"Moss","tag":"wet"}\n')
})
