import { join } from 'node:path'
import { expect, test } from 'vitest'
import { toJson } from '../../../src/plant/json.js'
import { bin, launch, waitForResult } from '../../helpers/sandbox/process.js'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'

// Each hint is followed to the letter: its options are added to the command that failed. The plants
// must then be in the store that the command named.

interface FailingCommand {
  title: string
  /** The files in the user's folder, by their names. */
  files?: Record<string, string>
  /** Commands that succeed before. */
  before?: string[]
  /** The command that fails. It names the store garden.db. */
  command: string
  /** The options that the hint names, with the plants that are stored when they are added. */
  ways: Record<string, object[]>
  /** The exit code at the end of a way: 6 if a row is still rejected. */
  code?: number
}

const generated = [
  { id: 1, name: 'Rose', tag: 'red' },
  { id: 2, name: 'Fern' },
]
const generating = { '--by-name': generated }
const names = 'name,tag\nRose,red\nFern,\n'
const textIds = 'id,name,tag\nx1,Rose,red\nx2,Fern,\n'
const failingCommands: FailingCommand[] = [
  ...[
    ['plants import a.csv -s garden.db', names],
    ['plants import a.csv -s garden.db --map id=', names],
    ['plants import a.csv -s garden.db --map id=,name=Kind', names.replace('name', 'Kind')],
    ['plants import a.csv -s garden.db --map id= --map name=1', names],
    ['plants import a.csv -s garden.db --map id=', textIds, 'A list has texts as ids'],
  ].map(([command = '', list = '', title = 'A list has no ids']) => ({
    ...{ title, files: { 'a.csv': list }, command, ways: generating },
  })),
  {
    title: 'A list has no ids',
    files: { 'a.json': '[{"name":"Rose","tag":"red"},{"name":"Fern"}]' },
    command: 'plants import a.json -s garden.db',
    ways: generating,
  },
  {
    title: 'No row has an id that is a number',
    files: { 'a.csv': textIds },
    command: 'plants import a.csv -s garden.db',
    ways: { '--map id= --by-name': generated },
  },
  {
    title: 'No row has an id',
    files: { 'a.csv': 'id,name,tag\n,Rose,red\n,Fern,\n' },
    command: 'plants import a.csv -s garden.db',
    ways: generating,
  },
  {
    title: 'A plant exists, and another row is wrong',
    files: { 'a.csv': 'id,name\n1,Rose\n2,\n' },
    before: ['plants create --id 1 --name Old -s garden.db'],
    command: 'plants import a.csv -s garden.db',
    ways: {
      '--if-exists skip': [{ id: 1, name: 'Old' }],
      '--if-exists update': [{ id: 1, name: 'Rose' }],
    },
    code: 6,
  },
]

/** Runs a line in a shell that finds this program under its name. */
function runShell(user: Sandbox, line: string) {
  const path = `${join(user.home, 'bin')}:${process.env['PATH']}`
  const command = ['bash', '-c', `set -o pipefail; ${line}`]
  return waitForResult(launch(user, command, { env: { PATH: path } }))
}

function createUser(files: Record<string, string> = {}): Sandbox {
  const user = new Sandbox()
  user.write('bin/plants', `#!/bin/sh\nexec '${bin}' "$@"\n`, 0o700)
  for (const [name, content] of Object.entries(files)) user.write(name, content)
  return user
}

async function provoke(failing: FailingCommand) {
  const user = createUser(failing.files)
  for (const line of failing.before ?? [])
    expect(await runShell(user, line)).toMatchObject({ code: 0 })
  return { user, result: await runShell(user, failing.command) }
}

test.skipIf(isWindows).each(failingCommands)(
  'the hint of $command, followed to the letter, ends the matter: $title (needs sh)',
  async (failing) => {
    for (const [options, plants] of Object.entries(failing.ways)) {
      const { user, result } = await provoke(failing)
      expect(result.code, result.err).not.toBe(0)
      const hint = result.err.split('\n  ').at(-1) ?? ''
      for (const option of options.split(/ (?=--)/)) expect(hint).toContain(option)
      const followed = await runShell(user, `${failing.command} ${options}`)
      expect(followed, options).toMatchObject({ code: failing.code ?? 0 })
      const stored = await runShell(user, 'plants list -s garden.db')
      expect(stored.out, options).toBe(plants.map((plant) => `${toJson(plant)}\n`).join(''))
    }
  },
)

test.skipIf(isWindows)(
  'the option that the error for a store among the files names imports into this store (needs sh)',
  async () => {
    const user = createUser({ 'a.csv': 'id,name\n1,NAME\n' })
    const before = await runShell(user, 'plants create --id 2 --name Fern -s garden.db')
    expect(before).toMatchObject({ code: 0 })
    const failure = await runShell(user, 'plants import a.csv garden.db')
    expect(failure.code).toBe(2)
    const [option] = /--\w+/.exec(failure.err) ?? []
    const followed = await runShell(user, `plants import a.csv ${option} garden.db`)
    expect(followed).toMatchObject({ code: 0 })
    const { out } = await runShell(user, 'plants list -s garden.db')
    expect(out).toBe('{"id":1,"name":"NAME"}\n{"id":2,"name":"Fern"}\n')
  },
)

test.each([
  ['a.csv', 'id,name\nx1,Rose\nx2,Fern\n', 6],
  ['a.json', '[]', 0],
  ['a.csv', 'id,name\n', 0],
])(
  'an import of the file %s with the content %j creates neither a plant nor a store',
  async (file, content, code) => {
    const user = new Sandbox()
    user.write(file, content)
    const result = await user.run(['import', file, '-s', 'garden.db', '--rejects', 'rejects'])
    expect([result.code, user.has('garden.db')]).toEqual([code, false])
    expect([result.err.includes('Created store'), user.has('rejects')]).toEqual([false, code === 6])
    user.write(file, 'id,name\n1,Rose\n')
    const next = await user.run(['import', file, '-s', 'garden.db', '--format', 'csv'])
    expect([next.code, user.has('garden.db')]).toEqual([0, true])
  },
)

test('a record without a name is rejected after a warning of the keys that it has', async () => {
  const user = new Sandbox()
  user.write('a.json', '[{"id":1,"name":"Rose"},{"id":2,"nam":"Fern"}]')
  const imported = await user.run('import a.json')
  const created = await user.run('create -', { stdin: '{"id":2,"nam":"Fern"}' })
  for (const { err } of [imported, created]) {
    expect(err).toContain('Invalid plant: the name is missing\n')
    expect(err).toContain('ignored field "nam"')
  }
})
