import { expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { CapturedOutput, createIo } from '../../helpers/sandbox/run.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'

const hint = 'Write the output to a disk with more space'

/** Runs a command line whose stdout is a full disk, and returns the exit code and the hint. */
async function runWithFullDisk(line: string) {
  const user = new Sandbox({ timeout: '5s', stores: { team: { address: 'http://localhost:1' } } })
  user.write('rows.ndjson', '{"id":2,"name":"Moss"}\n')
  user.write('conflicts.ndjson', '{"id":2,"name":"Moss"}\n{"id":1,"name":"Oak"}\n')
  for (const given of ['create --id 1 --name Fern', 'tokens create', 'backup plants.bak'])
    expect((await user.run(given)).code).toBe(0)
  const env = { ...user.env, PLANTS_TOKEN: 'plants_0123456789abcdef' }
  const io = createIo({ cwd: user.home, env })
  const [stdout, stderr] = [new CapturedOutput({}, 'stdout'), new CapturedOutput({}, 'stderr')]
  stdout.write = () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' }))
  const code = await run(line.split(' '), { ...io, stdout, stderr })
  return { code, shownHint: stderr.text.split('\n').at(-2)?.trim() }
}

test.each([
  'list',
  'get 1',
  'count',
  'count --by tag',
  'export',
  'doctor',
  'tokens list',
  'stores list',
  'config list',
  'config get timeout',
  'auth status --store team',
  'openapi',
  'completion bash',
  'version',
  '--help',
  'create --id 2 --name Moss --dry-run',
  'update 1 --name Oak --dry-run',
  'delete 1 --dry-run',
  'import rows.ndjson --dry-run',
  'import conflicts.ndjson --atomic',
  'restore plants.bak --dry-run',
])('plants %s speaks of no change if the disk of its output is full', async (line) => {
  expect(await runWithFullDisk(line)).toEqual({ code: 74, shownHint: hint })
})

test.each([
  'create --id 2 --name Moss',
  'update 1 --name Oak',
  'delete 1 --yes',
  'import rows.ndjson',
  'export plants.csv',
  'backup plants.bak',
  'restore plants.bak --yes',
  'tokens create',
  'tokens revoke 1',
  'stores add garden ./garden.db',
  'stores init ./garden.db',
  'stores use team',
  'stores remove team',
  'config set timeout 1m',
  'config unset timeout',
  'auth logout --store team',
])('plants %s says that its work is kept if the disk of its output is full', async (line) => {
  const shownHint = `${hint}: what the command has done is kept`
  expect(await runWithFullDisk(line)).toEqual({ code: 74, shownHint })
})
