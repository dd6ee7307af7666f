import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { traceDisk } from '../../helpers/sandbox/disk-trace.js'
import { canTrace } from '../../helpers/sandbox/linux.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { buildRequest, connectTo } from '../../helpers/scripted-server/raw-http.js'
import { serve } from '../../helpers/scripted-server/service.js'

// Each command and a service run under strace, whose trace shows what they reported before it was on
// disk.

const create = 'create --id 1 --name Fern'
const backup = 'backup b.db'
const wal = 'data/plants.db-wal'

interface DurableCommand {
  command: string
  /** The commands that run before it. */
  before?: string[]
  /** What must be synced before the command reports its result. */
  syncedPaths: string[]
  streams?: string[]
  code?: number
}

const bothStreams = ['stderr', 'stdout']
const commands: DurableCommand[] = [
  { command: create, syncedPaths: [wal, 'data', '.'] },
  { command: `${create} --store a.db`, syncedPaths: ['a.db-wal', '.'], streams: bothStreams },
  { command: 'update 1 --name Moss', before: [create], syncedPaths: [wal] },
  { command: 'delete 1 --yes', before: [create], syncedPaths: [wal] },
  { command: 'import input.ndjson', syncedPaths: [wal] },
  { command: 'import input.ndjson --atomic', syncedPaths: [wal] },
  {
    command: 'import input.ndjson --rejects rejects',
    before: ['create --id 1 --name Oak'],
    syncedPaths: [wal, expect.stringMatching(/^\.plants-.*\.tmp$/), '.'],
    streams: bothStreams,
    code: 6,
  },
  { command: backup, before: [create], syncedPaths: ['.'] },
  {
    command: 'restore b.db --store new.db',
    before: [create, backup],
    syncedPaths: ['new.db-wal', '.'],
    streams: bothStreams,
  },
  { command: 'restore b.db --yes', before: [create, backup], syncedPaths: [wal, 'data'] },
  { command: 'export out.ndjson', before: [create], syncedPaths: ['.'] },
  { command: 'config set timeout 9s', syncedPaths: ['.config/plants', '.config', '.'] },
  { command: 'tokens create', syncedPaths: [wal] },
]

/** Prepares a home with an input and what other commands left, and traces what follows. */
async function prepareTrace(before: string[] = []) {
  const sandbox = new Sandbox()
  Object.assign(sandbox, { env: {} })
  for (const line of before) expect((await sandbox.spawn(line)).code).toBe(0)
  sandbox.write('input.ndjson', '{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n')
  const disk = traceDisk(sandbox.home, join(createTemporaryFolder(), 'log'))
  const run = async (line: string, env: Record<string, string> = {}) => {
    const { code } = await sandbox.spawn(line, { env }, ...disk.strace)
    const { reports, tooEarly } = disk.review()
    const streams = [...new Set(reports.map(({ stream }) => stream))].toSorted()
    const syncedPaths = reports.flatMap((report) => report.syncedPaths)
    return { code, streams, syncedPaths, tooEarly }
  }
  return { sandbox, disk, run }
}

describe.runIf(canTrace)('a result is on disk before it is reported (needs strace):', () => {
  test.each(commands)('the result of plants $command', async (row) => {
    const { command, before, syncedPaths, streams = ['stdout'], code = 0 } = row
    const { run } = await prepareTrace(before)
    const expected = {
      code,
      streams,
      syncedPaths: expect.arrayContaining(syncedPaths),
      tooEarly: [],
    }
    expect(await run(command)).toEqual(expected)
  })

  test('the settings, also where a snap has set a variable that makes conf write in place', async () => {
    const { run } = await prepareTrace(['config set timeout 9s'])
    const expected = {
      code: 0,
      streams: ['stdout'],
      syncedPaths: expect.arrayContaining(['.config/plants']),
      tooEarly: [],
    }
    expect(await run('config set timeout 8s', { SNAP: '/snap/editor/1' })).toEqual(expected)
  })

  test('each change that a service acknowledges', async () => {
    const { sandbox, disk } = await prepareTrace()
    const token = (await sandbox.spawn('tokens create --allow create,update,delete')).out.trim()
    const service = await serve([], { folder: sandbox.home, env: {}, through: disk.strace })
    const connection = await connectTo(service.endpoint)
    const requests = [
      { body: '{"id":1,"name":"Fern"}' },
      { method: 'PATCH', target: '/plants/1', body: '{"name":"Moss"}' },
      { method: 'DELETE', target: '/plants/1' },
    ]
    const statuses = []
    for (const request of requests) {
      connection.send(buildRequest(token, request))
      statuses.push((await connection.readResponse(request))?.status)
    }
    // strace runs the service as its child, and would not pass the signal on.
    const children = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8')
    process.kill(parseInt(children, 10), 'SIGTERM')
    const { code } = await service.ended
    const { reports, tooEarly } = disk.review()
    const responses = reports.filter(({ stream }) => stream === 'socket')
    expect({ code, statuses, tooEarly }).toEqual({
      code: 0,
      statuses: [200, 200, 200],
      tooEarly: [],
    })
    const areSynced = responses.map(({ syncedPaths }) => syncedPaths.includes(wal))
    expect(areSynced).toEqual([true, true, true])
  })
})
