import { readdirSync } from 'node:fs'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { bin, withoutCache } from '../../helpers/sandbox/process.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { type Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { openTerminal } from '../../helpers/sandbox/terminal.js'
import {
  columns,
  createSandboxWithFile,
  down,
  enter,
  noColor,
  table,
} from './import-dialogue-steps.js'

// A person confirms an import on a terminal, and can take it back.

const undoLine = /To undo, with all that was stored since: plants (?<words>restore .*? --yes)\r\n/g

async function createUser(): Promise<Sandbox> {
  const user = createSandboxWithFile(table)
  await user.run('create --id 1 --name Fern')
  return user
}

const listCopies = ({ data }: Sandbox) =>
  readdirSync(data).filter((name) => name.includes('.before-import'))

test.for(['bash', 'fish', 'zsh'])(
  'the command that undoes an import does so in %s (needs it)',
  async (shell, { skip }) => {
    skip(!isInstalled(shell))
    const user = createSandboxWithFile(table)
    const store = ['--store', "./it's my.db"]
    await user.run(['create', '--id', '1', '--name', 'Fern', ...store])
    const token = await user.run(['tokens', 'create', '--note', 'ci', ...store])
    expect(token.code).toBe(0)
    const session = user.terminal(['import', 'list.csv', ...store], noColor)
    await session.answer(...columns, ['Import 2 plants', enter])
    const { code, screen } = await session.ended
    expect(code).toBe(0)
    const commands = [...screen.matchAll(undoLine)].map(({ groups }) => groups?.['words'])
    expect([commands.length, new Set(commands).size]).toEqual([2, 1])
    await user.run(['tokens', 'revoke', 'ci', ...store])
    const tokens = await user.run(['tokens', 'list', ...store])
    const env = { ...user.env, PATH: process.env['PATH'] }
    await execa(shell, ['-c', `${bin} ${commands[0]}`], { cwd: user.home, env, extendEnv: false })
    expect(await user.run(['list', ...store])).toEqual(toJsonResult({ id: 1, name: 'Fern' }))
    expect(await user.run(['tokens', 'list', ...store])).toEqual(tokens)
  },
)

test('the summary of a confirmed import as JSON has the command that undoes it', async () => {
  const user = await createUser()
  const session = user.terminal('import list.csv --output json', noColor)
  await session.answer(...columns, ['Import 2 plants', enter])
  const { screen } = await session.ended
  const [, undo = ''] = /"undo":"plants (.*?)"/.exec(screen) ?? []
  expect((await user.run(undo)).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult({ id: 1, name: 'Fern' }))
})

test('an import that a person declines leaves no copy, and one into an empty store makes none', async () => {
  const user = await createUser()
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...columns)
  await session.waitForText('Import 2 plants')
  expect(listCopies(user)).toHaveLength(1)
  session.type(`${down}${enter}`)
  expect((await session.ended).code).toBe(130)
  expect(listCopies(user)).toEqual([])

  const other = createSandboxWithFile(table)
  const newStore = other.terminal('import list.csv', noColor)
  await newStore.answer(...columns, ['Import 2 plants', enter])
  const { screen } = await newStore.ended
  expect([screen.includes('undo'), listCopies(other)]).toEqual([false, []])
})

test('a confirmed import that changes nothing leaves no copy', async () => {
  const user = await createUser()
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...columns)
  await session.waitForText('Import 2 plants')
  await user.run('create --id 31 --name Oak')
  await user.run('create --id 32 --name Oak')
  session.type(enter)
  expect((await session.ended).code).toBe(6)
  expect(listCopies(user)).toEqual([])
})

test('a dry run, and an import that asks nothing, make no copy', async () => {
  const user = await createUser()
  const session = user.terminal('import list.csv --dry-run', noColor)
  await session.answer(...columns)
  await session.ended
  user.write('plain.csv', 'id,name\n5,Oak\n')
  const { code, screen } = await user.terminal('import plain.csv', noColor).ended
  expect([code, screen.includes('undo'), listCopies(user)]).toEqual([0, false, []])
})

test('an import goes on with a warning if no copy can be made (needs sh)', async () => {
  const user = await createUser()
  // The program gets the number of the shell, which is a part of the name of the copy.
  const script = `mkdir "${user.store}.before-import.$$.tmp"; exec "${bin}" import list.csv`
  const env = { ...withoutCache, ...user.env, ...noColor }
  const session = openTerminal('sh', ['-c', script], user.home, env)
  await session.answer(
    ...columns,
    ['The import cannot be undone: ', ''],
    ['Import 2 plants', enter],
  )
  const { code, screen } = await session.ended
  expect([code, screen.includes('To undo')]).toEqual([0, false])
  expect((await user.run('count')).out).toBe('3\n')
})

test('an --atomic import that is rejected leaves no copy', async () => {
  const user = await createUser()
  await user.run('create --id 31 --name Oak')
  const session = user.terminal('import list.csv --atomic --if-exists same', noColor)
  await session.answer(...columns, ['Import 1 of 2 plants', enter])
  expect((await session.ended).code).toBe(6)
  expect(listCopies(user)).toEqual([])
})
