import { execa } from 'execa'
import { expect, test } from 'vitest'
import { buildPlantLines, countPlants, writeLines } from '../../helpers/sandbox/import-sandbox.js'
import { bin } from '../../helpers/sandbox/process.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { isWindows, Sandbox, toJsonResult, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { openTerminal } from '../../helpers/sandbox/terminal.js'

const fern = 'create --id 1 --name Fern'
/** Questions have no colours with the variable alone. */
const plain = { NO_COLOR: '1' }
const moss = (id: number) => ({ id, name: 'Moss' })

/** A user who has run commands. */
async function after(...commands: string[]): Promise<Sandbox> {
  const user = new Sandbox()
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
      ...{ id: '\u202e\r', '"\\u{202e}"': '\x7f 42 \r' },
      ...{ name: '\r', 'Enter a name': 'Fern\r', tag: '\r' },
    },
    [{ id: 42, name: 'Fern' }],
  ],
  [
    'proposes next, which is the greatest id plus 1',
    ['create --id 41 --name Moss'],
    'create --name Fern --tag shade',
    { '? id, or next for the greatest id plus 1 (next)': '\r' },
    [moss(41), { id: 42, name: 'Fern', tag: 'shade' }],
  ],
  [
    'proposes no id with an idempotency key, which belongs to one',
    ['create --id 41 --name Moss'],
    'create --name Fern --tag shade --idempotency-key k',
    { '? id': '\r', 'whole number': '43\r' },
    [moss(41), { id: 43, name: 'Fern', tag: 'shade' }],
  ],
  [
    'asks for no tag when --tag is empty',
    [],
    'create --id=1 --tag=',
    { name: 'Fern\r' },
    [{ id: 1, name: 'Fern', tag: '' }],
  ],
  [
    'takes the answers of all questions from one paste',
    [],
    'create',
    { 'plus 1 (next)': '1\r\nFern\r\nshade\r\n' },
    [{ id: 1, name: 'Fern', tag: 'shade' }],
  ],
  [
    'takes a paste up to a wrong answer',
    [],
    'create',
    { 'plus 1 (next)': 'x\r1\rFern\r', 'whole number': '\x7f1\rFe', name: 'rn\rshade\r' },
    [{ id: 1, name: 'Fern', tag: 'shade' }],
  ],
])('create %s', async (_, given, command, turns, plants) => {
  const user = await after(...given)
  const session = user.terminal(command, plain)
  await session.answer(...Object.entries(turns))
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult(...plants))
})

test('create chooses the next id at the time when the questions are answered', async () => {
  const user = new Sandbox()
  const session = user.terminal('create', plain)
  await session.answer(['? id, or next for the greatest id plus 1 (next)', '\r'], ['name', 'Fern'])
  await user.run('create --id 1 --name Moss')
  await session.answer(['Fern', '\r'], ['tag', '\r'])
  await session.ended
  expect(await user.run('list')).toEqual(toJsonResult(moss(1), { id: 2, name: 'Fern' }))
})

test.each([
  ['1 2 7', 'Delete Fern (id 1, tag wet), Moss (id 2, tag wet)? (y/N)', 1],
  ['--tag wet --search W', 'Delete Fern (id 1, tag wet), Moss (id 2, tag wet)? (y/N)', 0],
])('delete %s asks once, %j, and exits with %i', async (args, question, code) => {
  const user = await after(`${fern} --tag wet`, 'create --id 2 --name Moss --tag wet')
  const session = user.terminal(`delete ${args}`, plain)
  await session.answer([question, 'y\r'])
  expect((await session.ended).code).toBe(code)
  expect(await user.run('count')).toEqual(toTextResult('0\n'))
})

test.each(['--tag wet', '1 2'])(
  'delete %s keeps plants that were created while it asked',
  async (args) => {
    const user = await after('create --id 1 --name Moss --tag wet')
    const session = user.terminal(`delete ${args}`, plain)
    await session.waitForText('Delete Moss (id 1, tag wet)')
    await user.run('create --id 2 --name Moss --tag wet')
    session.type('y\r')
    await session.ended
    expect(await user.run('list')).toEqual(toJsonResult({ id: 2, name: 'Moss', tag: 'wet' }))
  },
)

test('a confirmation takes only y, yes, n and no, and asks again after anything else', async () => {
  const user = await after(fern)
  const declined = user.terminal('delete 1', plain)
  await declined.waitForText('(y/N)')
  for (const text of ['yikes', 'ye', 'nein', 'yes no']) {
    declined.type(`${text}\r`)
    await declined.answer([`(y/N) ${text}`, ''], ['Answer y or n', ''])
  }
  declined.type('No\r')
  expect((await declined.ended).code).toBe(130)
  const confirmed = user.terminal('delete 1', plain)
  await confirmed.answer(['(y/N)', 'yikes\r'], ['Answer y or n', ' YES \r'])
  expect((await confirmed.ended).code).toBe(0)
  expect(await user.run('count')).toEqual(toTextResult('0\n'))
})

test('the question of delete names the saved store and its address', async () => {
  const user = await after('stores add prod ./garden.db', `${fern} --store ./garden.db`)
  const session = user.terminal('delete 1 --store prod', plain)
  await session.answer([`Delete Fern (id 1) from prod (${user.home}/garden.db)? (y/N)`, 'y\r'])
  expect((await session.ended).code).toBe(0)
})

test.each([
  ['create --id 2', 'name', '\x03'],
  ['create --id 2', 'name', '\x04'],
  ['create --id 2', 'name', '\x1b'],
  ['delete 1', '(y/N)', '\x1b'],
  ['delete 1', '(y/N)', '\r'],
])(
  'plants %s changes nothing and exits with 130 if its question %j is answered with %j',
  async (command, question, key) => {
    const user = await after(fern)
    const session = user.terminal(command)
    await session.answer([question, key])
    expect((await session.ended).code).toBe(130)
    expect(await user.run('list')).toEqual(toJsonResult({ id: 1, name: 'Fern' }))
  },
)

const other = '--store ./o.db'
test.each([
  ['restore plants.bak', ['backup plants.bak', 'update 1 --name Oak'], 'list', 'Fern', 'Oak'],
  ['export list.csv', ['export list.csv', 'update 1 --name Oak'], '', 'Oak', 'Fern'],
  [
    'backup plants.bak',
    [
      ...[1, 2, 3].map((id) => `create --id ${id} --name Moss ${other}`),
      `backup plants.bak ${other}`,
    ],
    'list --store ./plants.bak',
    'Fern',
    'Moss',
  ],
])('plants %s asks before it replaces a file', async (command, given, show, replaced, kept) => {
  for (const [key, code, name] of [
    ['\r', 130, kept],
    ['y\r', 0, replaced],
  ] as const) {
    const user = await after(fern, ...given)
    const session = user.terminal(command, plain)
    await session.answer(['(y/N)', key])
    expect([key, (await session.ended).code]).toEqual([key, code])
    const left = show ? (await user.run(show)).out : user.read('list.csv')
    expect([replaced, kept].filter((each) => left.includes(each))).toEqual([name])
  }
})

test.skipIf(!isInstalled('bash'))(
  'Ctrl-C in a pipeline ends an import, although it ends the input, too (needs bash)',
  async () => {
    const user = new Sandbox()
    const env = { ...user.env, PS1: 'shell> ' }
    // A shell with job control
    const shell = openTerminal('bash', ['--norc', '--noediting', '-i'], user.home, env)
    writeLines(user.home, buildPlantLines(50_000))
    const input = '(cat plants.ndjson; tail -f /dev/null)'
    await shell.answer(['shell> ', `${input} | ${bin} import --no-color\r`])
    await expect.poll(() => countPlants(user.store)).toBeGreaterThan(0)
    await shell.answer(['', '\x03'], ['Interrupted', ''], ['shell> ', 'exit\r'])
    await shell.ended
  },
)

test.skipIf(isWindows).each<[command: string, turns: [question: string, text: string][]]>([
  ['create', [['plus 1 (next)', '']]],
  [
    'create',
    [
      ['plus 1 (next)', '\r'],
      ['name', ''],
    ],
  ],
  [
    'create',
    [
      ['plus 1 (next)', 'x\r7'],
      ['whole number', ''],
    ],
  ],
  ['delete 1', [['(y/N)', '']]],
  ['import list.csv', [['the name?', '']]],
  ['auth login --store https://plants.example.com', [['token for', '']]],
])(
  'plants %s ends with exit code 143 if the terminal closes after %j (needs SIGHUP)',
  async (command, turns) => {
    const user = await after(fern)
    user.write('list.csv', 'Nr;Plant\n2;Moss\n')
    const session = user.terminal(command, plain)
    await session.answer(...turns)
    session.close()
    expect((await session.ended).code).toBe(143)
    expect(await user.run('list')).toEqual(toJsonResult({ id: 1, name: 'Fern' }))
  },
)

test.skipIf(isWindows)(
  'an import whose terminal closes ends with exit code 143 (needs SIGHUP)',
  async () => {
    const user = new Sandbox()
    writeLines(user.home, buildPlantLines(300_000))
    const session = user.terminal('import plants.ndjson', plain)
    await session.waitForText(' done, ')
    session.close()
    expect((await session.ended).code).toBe(143)
  },
)

test.skipIf(process.env['PLANTS_BIN'] !== undefined || !isInstalled('script')).each([
  ['create', 'next'],
  ['list', 'page 1'],
])(
  'plants %s ends with exit code 143 if its terminal closes without a signal (needs Node as its runtime)',
  async (command, shown) => {
    const user = await after(fern)
    const line = `trap '' HUP; ${bin} ${command}; echo $? >code`
    // The pager ends when its terminal closes, as less does.
    const PAGER = 'echo page 1; read key < /dev/tty; true'
    const options = { cwd: user.home, env: { ...user.env, PAGER }, reject: false }
    const screen = execa('script', ['-qc', line, '/dev/null'], options)
    screen.stdout.on('data', (text) => String(text).includes(shown) && screen.kill('SIGKILL'))
    await screen
    await expect.poll(() => user.has('code') && user.read('code')).toBe('143\n')
  },
)
