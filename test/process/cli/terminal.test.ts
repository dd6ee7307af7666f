import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { countOf, plantLines, writeLines } from '../../helpers/import.js'
import { bin, withoutCache } from '../../helpers/process.js'
import { isHere } from '../../helpers/programs.js'
import { type Terminal, terminalFor } from '../../helpers/terminal.js'
import { answer, printed, World } from '../../helpers/world.js'

const fern = 'create --id 1 --name Fern'
/** Questions have no colours with the variable alone. */
const plain = { NO_COLOR: '1' }
const moss = (id: number) => ({ id, name: 'Moss' })

/** A user who has run commands. */
async function after(...commands: string[]): Promise<World> {
  const user = new World()
  for (const command of commands) expect((await user.run(command)).code).toBe(0)
  return user
}

test.each<
  [what: string, given: string[], command: string, turns: Record<string, string>, plants: object[]]
>([
  [
    'asks for id, name and tag, and again after a wrong id and an empty name',
    [],
    'create',
    {
      id: '\u202e\r',
      '"\\u{202e}"': '\x7f 42 \r',
      name: '\r',
      'Enter a name': 'Fern\r',
      tag: '\r',
    },
    [{ id: 42, name: 'Fern' }],
  ],
  [
    'proposes next, which is the greatest id plus 1',
    ['create --id 41 --name Moss'],
    'create --name Fern --tag shade',
    { '? id, or next (next)': '\r' },
    [moss(41), { id: 42, name: 'Fern', tag: 'shade' }],
  ],
  [
    'proposes no id with an idempotency key, which belongs to one',
    ['create --id 41 --name Moss'],
    'create --name Fern --tag shade --idempotency-key k',
    { '? id': '\r', 'an integer from': '43\r' },
    [moss(41), { id: 43, name: 'Fern', tag: 'shade' }],
  ],
  [
    'asks for no tag when --tag is empty',
    [],
    'create --id=1 --tag=',
    { name: 'Fern\r' },
    [{ id: 1, name: 'Fern', tag: '' }],
  ],
])('create %s', async (_, given, command, turns, plants) => {
  const user = await after(...given)
  const session = user.terminal(command, plain)
  await session.answer(...Object.entries(turns))
  const { code, screen } = await session.ended
  expect([code, stripVTControlCharacters(screen)]).toEqual([0, expect.stringContaining('Planted ')])
  expect(await user.run('list')).toEqual(answer(...plants))
})

test.each(['1\rFern\rshade\r', '1\r\nFern\r\nshade\r\n', 'x\r1\rFern\r'])(
  'create takes from one paste the answers of all questions, up to a wrong one: %j',
  async (paste) => {
    const user = new World()
    const session = user.terminal('create', plain)
    await session.answer(['? id, or next (next)', paste])
    if (paste.startsWith('x'))
      await session.answer(['an integer', '\x7f1\rFe'], ['name', 'rn\rshade\r'])
    expect((await session.ended).code).toBe(0)
    expect(await user.run('list')).toEqual(answer({ id: 1, name: 'Fern', tag: 'shade' }))
  },
)

test('create asks for an id where the largest one is taken', async () => {
  const user = await after('create --id 9223372036854775807 --name Fern')
  const session = user.terminal('create')
  await session.answer(['id', '2\r'], ['name', 'Moss\r'], ['tag', '\r'])
  expect((await session.ended).code).toBe(0)
})

test('create takes the id that is next when the questions are answered', async () => {
  const user = new World()
  const session = user.terminal('create', plain)
  await session.answer(['? id, or next (next)', '\r'], ['name', 'Fern'])
  await user.run('create --id 1 --name Moss')
  await session.answer(['Fern', '\r'], ['tag', '\r'])
  expect(stripVTControlCharacters((await session.ended).screen)).toContain('Planted Fern (id 2)')
})

test('an answer that is not UTF-8 is rejected', async () => {
  const user = new World()
  const session = user.terminal('create --id 1')
  await session.see('name')
  session.typeBytes([0xff, 0x78, 0x0d])
  await session.answer(['This is not UTF-8', '\x7f\x7fFern\r'], ['tag', '\r'])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(answer({ id: 1, name: 'Fern' }))
})

test.each([
  ['1 2 7', 'Delete Fern (id 1, tag wet), Moss (id 2, tag wet)? (y/N)', 1],
  ['--tag wet --search W', 'Delete Fern (id 1, tag wet), Moss (id 2, tag wet)? (y/N)', 0],
])('delete %s asks once: %s', async (args, question, code) => {
  const user = await after(`${fern} --tag wet`, 'create --id 2 --name Moss --tag wet')
  const session = user.terminal(`delete ${args}`, plain)
  await session.answer([question, 'y\r'])
  expect((await session.ended).code).toBe(code)
  expect(await user.run('count')).toEqual(printed('0\n'))
})

test('delete names its store', async () => {
  const user = await after('stores add prod ./garden.db', `${fern} --store ./garden.db`)
  const session = user.terminal('delete 1 --store prod', plain)
  await session.answer([`Delete Fern (id 1) from prod (${user.home}/garden.db)? (y/N)`, 'y\r'])
  expect((await session.ended).code).toBe(0)
})

test.each([
  ['create --id 2', 'name', '\x03'],
  ['create --id 2', 'name', '\x04'],
  ['delete 1', '(y/N)', '\r'],
])('%s does nothing after %j %j: exit code 130', async (command, question, key) => {
  const user = await after(fern)
  const session = user.terminal(command)
  await session.answer([question, key])
  expect((await session.ended).code).toBe(130)
  expect(await user.run('list')).toEqual(answer({ id: 1, name: 'Fern' }))
})

test.each([
  ['y\r', 0, { id: 1, name: 'Fern' }],
  ['n\r', 130, { id: 2, name: 'Moss' }],
])('a restore over plants asks first; after %j the exit code is %i', async (key, code, plant) => {
  const user = await after(fern, 'backup plants.bak', 'delete 1 --yes', 'create --id 2 --name Moss')
  const session = user.terminal(['restore', `${user.home}/plants.bak`], plain)
  await session.answer(['(y/N)', key])
  const screen = expect.stringMatching(/has\s+1\s+plant\.\s+Replace\s+it,\s+and\s+keep\s+a\s+copy/)
  expect(await session.ended).toEqual({ code, screen })
  expect(await user.run('list')).toEqual(answer(plant))
})

test.each([
  ['y\r', 0, 'id,name,tag\n1,Fern,\n'],
  ['\r', 130, 'mine'],
])('an export over a file asks first; after %j the exit code is %i', async (key, code, content) => {
  const user = await after(fern)
  user.write('my list.csv', 'mine')
  const session = user.terminal(['export', 'my list.csv'], plain)
  await session.answer(['? my list.csv already exists. Replace it? (y/N)', key])
  const said = code === 0 ? 'Exported 1 plant to my list.csv' : 'plants: Nothing was exported'
  expect(await session.ended).toEqual({ code, screen: expect.stringContaining(said) })
  expect(user.read('my list.csv')).toBe(content)
})

test.each([
  ['y\r', 0, [1]],
  ['\r', 130, [2, 3, 4]],
])(
  'a backup over a larger one asks first; after %j the exit code is %i',
  async (key, code, ids) => {
    const user = new World()
    for (const id of [2, 3, 4]) await user.run(`create --id ${id} --name Moss -s ./o.db`)
    await user.run('backup plants.bak -s ./o.db')
    await user.run(fern)
    const session = user.terminal('backup plants.bak', plain)
    await session.answer(['(y/N)', key])
    const screen = expect.stringMatching(/Replace\s+it\?/)
    expect(await session.ended).toEqual({ code, screen })
    const kept = (await user.run('list --store ./plants.bak -o ndjson')).out.trim().split('\n')
    expect(kept.map((line) => JSON.parse(line).id)).toEqual(ids)
  },
)

/** A shell with job control, on a terminal. */
function shellOf(user: World): Terminal {
  const env = {
    ...user.env,
    ...withoutCache,
    PATH: process.env['PATH'] ?? '',
    HOME: user.home,
    PS1: 'shell> ',
  }
  return terminalFor('bash', ['--norc', '--noediting', '-i'], user.home, env)
}

test.skipIf(!isHere('bash'))(
  'Ctrl-C in a pipeline ends an import, although it ends the input, too (needs bash)',
  async () => {
    const user = new World()
    const shell = shellOf(user)
    writeLines(user.home, plantLines(100_000))
    const input = '(cat plants.ndjson; tail -f /dev/null)'
    await shell.answer(['shell> ', `${input} | ${bin} import --no-color\r`])
    const stored = () => (user.has('data/plants.db') ? countOf(user.store) : 0)
    await expect.poll(stored).toBeGreaterThan(0)
    await shell.answer(['', '\x03'], ['Interrupted', ''], ['shell> ', 'exit\r'])
    await shell.ended
  },
)

test.each([
  ['delete --tag wet', 'Delete Moss (id 1, tag wet)'],
  ['delete 1 2', 'Delete Moss (id 1, tag wet)'],
])('%s deletes nothing that came while it asked', async (line, question) => {
  const user = await after('create --id 1 --name Moss --tag wet')
  const session = user.terminal(line, plain)
  await session.see(question)
  await user.run('create --id 2 --name Moss --tag wet')
  session.type('y\r')
  await session.ended
  expect(await user.run('list')).toEqual(answer({ id: 2, name: 'Moss', tag: 'wet' }))
})
