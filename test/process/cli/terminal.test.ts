import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { fill } from '../../helpers/fill.js'
import { plants } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

test('asks for id, name and tag, and lets a wrong id be mended', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create'], folder)
  await session.answer(['id', '1.5\r'], ['an integer, but', '\x7f\x7f\x7f42\r'], ['name', 'Fern\r'], ['tag', '\r'])
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  expect(stripVTControlCharacters(screen)).toContain('Planted Fern (id 42)')
  expect(await plants(['list'], folder)).toEqual({ code: 0, out: '{"id":42,"name":"Fern"}\n', err: '' })
})

test('proposes the next id, which Enter takes', async () => {
  const folder = temporaryFolder()
  await plants(['create', '--id', '41', '--name', 'Moss'], folder)
  const session = terminal(['create', '--name', 'Fern', '--tag', 'shade', '--no-color'], folder)
  await session.answer(['? id (42)', '\r'])
  expect(stripVTControlCharacters((await session.ended).screen)).toContain('Planted Fern (id 42, tag shade)')
})

test('takes the id after, when somebody else has taken the one that was proposed', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create', '--no-color'], folder)
  await session.answer(['? id (1)', '\r'], ['name', 'Fern'])
  await plants(['create', '--id', '1', '--name', 'Moss'], folder)
  await session.answer(['Fern', '\r'], ['tag', '\r'])
  expect(stripVTControlCharacters((await session.ended).screen)).toContain('Planted Fern (id 2)')
})

test.each([
  ['ids', ['1', '2', '7'], 'Delete Fern (id 1, tag wet), Moss (id 2, tag wet)? (y/N)', 1],
  ['a tag', ['--tag', 'wet'], 'Delete 2 plants with the tag "wet"? (y/N)', 0],
  [
    'a tag and a text',
    ['--tag', 'wet', '--search', 'W'],
    'Delete 2 plants with the tag "wet" whose name or tag contains "W"? (y/N)',
    0,
  ],
  ['no tag', ['--no-tag'], 'Delete 2 plants without a tag? (y/N)', 0],
])('asks once before it deletes by %s', async (_, args, question, code) => {
  const folder = temporaryFolder()
  for (const [id, name] of Object.entries(['', 'Fern', 'Moss']).slice(1))
    await plants(['create', '--id', id, '--name', name, ...(args.includes('--no-tag') ? [] : ['--tag', 'wet'])], folder)
  const session = terminal(['delete', ...args, '--no-color'], folder)
  await session.answer([question, 'y\r'])
  expect((await session.ended).code).toBe(code)
  expect((await plants(['count'], folder)).out).toBe('0\n')
})

test.each([
  ['a path', [], './garden.db', 'HOME/garden.db'],
  ['a name', ['stores', 'add', 'prod', './garden.db'], 'prod', 'prod (HOME/garden.db)'],
])('names the store from which it deletes: %s', async (_, save, store, shown) => {
  const folder = temporaryFolder()
  if (save.length > 0) await plants(save, folder, { cwd: folder })
  await plants(['create', '--id', '1', '--name', 'Fern', '--store', './garden.db'], folder, { cwd: folder })
  const session = terminal(['delete', '1', '--no-color', '--store', store.replace('./', `${folder}/`)], folder)
  await session.answer([`Delete Fern (id 1) from ${shown.replace('HOME', folder)}? (y/N)`, 'y\r'])
  expect((await session.ended).code).toBe(0)
})

test('asks for no tag when --tag is empty, which is an empty tag', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create', '--id', '1', '--tag', ''], folder)
  await session.answer(['name', 'Fern\r'])
  expect((await session.ended).code).toBe(0)
  expect((await plants(['get', '1'], folder)).out).toBe('{"id":1,"name":"Fern","tag":""}\n')
})

test.each([
  ['Ctrl-C', '\x03', 130],
  ['Ctrl-D', '\x04', 130],
])('%s leaves with %s, and nothing is stored', async (_, key, exitCode) => {
  const folder = temporaryFolder()
  const session = terminal(['create', '--id', '1'], folder)
  await session.answer(['name', key])
  expect((await session.ended).code).toBe(exitCode)
  expect((await plants(['get', '1'], folder)).code).toBe(1)
})

test('says at once that an id is taken, and lets it be mended', async () => {
  const folder = temporaryFolder()
  await plants(['create', '--id', '1', '--name', 'Fern'], folder)
  const session = terminal(['create'], folder)
  await session.answer(['id', '1\r'], ['A plant with id 1 already exists', '2\r'], ['name', 'Moss\r'], ['tag', '\r'])
  expect((await session.ended).code).toBe(0)
  expect((await plants(['get', '12'], folder)).out).toBe('{"id":12,"name":"Moss"}\n')
})

test('asks nothing when the id that was given is taken, or the store cannot be used', async () => {
  const folder = temporaryFolder()
  await plants(['create', '--id', '1', '--name', 'Fern'], folder)
  const taken = await terminal(['create', '--id', '1', '--no-color'], folder).ended
  expect(taken).toEqual({
    code: 1,
    screen: 'plants: A plant with id 1 already exists\r\n  Look at it with: plants get 1\r\n',
  })
  expect((await terminal(['create', '--store', folder], folder).ended).code).toBe(4)
})

test('asks again for a name when Enter alone was pressed', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create', '--id', '1'], folder)
  await session.answer(['name', '\r'], ['Enter a name', 'Fern\r'], ['tag', '\r'])
  expect((await session.ended).code).toBe(0)
  expect((await plants(['get', '1'], folder)).out).toBe('{"id":1,"name":"Fern"}\n')
})

test('refuses an answer that is not UTF-8', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create', '--id', '1'], folder)
  await session.see('name')
  session.typeBytes([0xff, 0x78, 0x0d])
  await session.answer(['This is not UTF-8', '\x7f\x7fFern\r'], ['tag', '\r'])
  expect((await session.ended).code).toBe(0)
  expect((await plants(['get', '1'], folder)).out).toBe('{"id":1,"name":"Fern"}\n')
})

test('a refused answer cannot drive the terminal', async () => {
  const session = terminal(['create', '--no-color'], temporaryFolder())
  await session.answer(['id', '\u202e\u009b31m\r'], ['\\u{202e}', '\x03'])
  expect((await session.ended).screen).not.toMatch(/was "[^"]*[\u009b\u202e]/)
})

test('deletes only the plant that was shown', async () => {
  const folder = temporaryFolder()
  await plants(['create', '--id', '1', '--name', 'Fern'], folder)
  const session = terminal(['delete', '1', '--no-color'], folder)
  await session.see('Delete Fern (id 1)?')
  await plants(['delete', '1', '--yes'], folder)
  await plants(['create', '--id', '1', '--name', 'Moss'], folder)
  session.type('y\r')
  const { code, screen } = await session.ended
  expect(code).toBe(1)
  expect(screen).toContain(
    'plants: The plant 1 was changed or deleted by another process\r\n  This command did not delete it. Run it again\r\n',
  )
  expect((await plants(['get', '1'], folder)).out).toBe('{"id":1,"name":"Moss"}\n')
})

test.each(['n\r', '\r', '\x03'])('deletes nothing after %j', async (answer) => {
  const folder = temporaryFolder()
  await plants(['create', '--id', '1', '--name', 'Fern'], folder)
  const session = terminal(['delete', '1'], folder)
  await session.answer(['(y/N)', answer])
  expect((await session.ended).code).toBe(130)
  expect((await plants(['get', '1'], folder)).code).toBe(0)
})

test.each([
  ['y\r', 0, '{"id":1,"name":"Fern"}\n'],
  ['n\r', 130, '{"id":2,"name":"Moss"}\n'],
])('a restore over plants asks first; after %j it ends with %i', async (key, code, out) => {
  const folder = temporaryFolder()
  await plants(['create', '--id', '1', '--name', 'Fern', '--store', './plants.bak'], folder, { cwd: folder })
  await plants(['create', '--id', '2', '--name', 'Moss'], folder)
  const session = terminal(['restore', 'plants.bak', '--no-color'], folder)
  await session.answer(['(y/N)', key])
  const ended = await session.ended
  expect(ended).toEqual({
    code,
    screen: expect.stringMatching(/has\s+1\s+plant\.\s+Replace\s+it,\s+and\s+keep\s+a\s+copy/),
  })
  expect((await plants(['list'], folder)).out).toBe(out)
})

test('SIGTERM at a question ends with 143, and nothing is stored', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create', '--id', '1'], folder)
  await session.see('name')
  session.kill('SIGTERM')
  expect((await session.ended).code).toBe(143)
  expect((await plants(['get', '1'], folder)).code).toBe(1)
})

test('a long table stops at Ctrl-C', async () => {
  const folder = temporaryFolder()
  await plants(['create', '--id', '0', '--name', 'Fern'], folder)
  fill(join(folder, 'data/plants.db'), 300_000)
  const session = terminal(['list'], folder)
  await session.answer(['Plant 2000', '\x03'])
  const { code, screen } = await session.ended
  expect(code).toBe(130)
  expect(screen).not.toContain('Plant 299999')
})
