import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { canTrace } from '../../helpers/sandbox/linux.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { startPlantService } from '../../helpers/scripted-server/plant-service.js'
import { buildRequest, connectTo } from '../../helpers/scripted-server/raw-http.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'

// What is on disk before somebody is told: each command and a service run under strace, whose trace
// shows the writes, the syncs and the names, and what was said before they were durable.

const create = 'create --id 1 --name Fern'
const backup = 'backup b.db'
const log = 'data/plants.db-wal'
const both = ['stderr', 'stdout']

/**
 * What must be synced before a command writes its answer, after others; and the streams that it
 * writes to.
 */
const cases: [before: string[], command: string, synced: unknown[], told?: string[]][] = [
  [[], create, [log, 'data', '.']],
  [[], `${create} --store a.db`, ['a.db-wal', '.'], both],
  [[create], 'update 1 --name Moss', [log]],
  [[create], 'delete 1 --yes', [log]],
  [[], 'import input.ndjson', [log]],
  [[], 'import input.ndjson --atomic', [log]],
  [
    ['create --id 1 --name Oak'],
    'import input.ndjson --rejects rejects',
    [log, 'rejects', '.'],
    both,
  ],
  [[create], backup, ['.']],
  [[create, backup], 'restore b.db --store new.db', ['new.db-wal', '.'], both],
  [[create, backup], 'restore b.db --yes', [log, 'data']],
  [[create], 'export out.ndjson', ['.']],
  [[], 'config set timeout 9s', ['.config/plants', '.config', '.']],
  [[], 'tokens create', [log]],
]

/** A directory with some input and what commands have left, and what follows a command there. */
async function tracedFolder(before: string[] = []) {
  const user = new Sandbox()
  Object.assign(user, { env: {} })
  for (const line of before) expect((await user.spawn(line)).code).toBe(0)
  user.write('input.ndjson', '{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n')
  const disk = followDisk(user.home, join(createTemporaryFolder(), 'log'))
  /**
   * Runs a command; gives its exit code, the streams that it wrote to, and what was synced before.
   */
  const run = async (line: string, env: Record<string, string> = {}) => {
    const { code } = await user.spawn(line, { env }, 'strace', ...disk.tracer)
    const { told, early } = disk.review()
    const streams = [...new Set(told.map(({ stream }) => stream))].toSorted()
    return { code, told: streams, synced: told.flatMap(({ synced }) => synced), early }
  }
  return { user, disk, run }
}

describe.runIf(canTrace)('is on disk before it is told (needs strace):', () => {
  test.each(cases)('after %j: %s', async (before, command, synced, told = ['stdout']) => {
    const { run } = await tracedFolder(before)
    const code = command.includes('--rejects') ? 6 : 0
    const expected = { code, told, synced: expect.arrayContaining(synced), early: [] }
    expect(await run(command)).toEqual(expected)
  })

  test('an import into a service, also in its journal', async () => {
    const { run } = await tracedFolder()
    const { address } = await startPlantService()
    const journal = expect.stringMatching(/^\.local\/state\/plants\/imports\.db-wal$/)
    const folders = ['.local/state/plants', '.local/state', '.local', '.']
    expect(
      await run(`import input.ndjson --store ${address}`, { PLANTS_TOKEN: testToken }),
    ).toEqual({
      ...{ code: 0, told: ['socket', 'stdout'], early: [] },
      synced: expect.arrayContaining([journal, ...folders]),
    })
  })

  test('what a service answers', async () => {
    const { user, disk } = await tracedFolder()
    const token = (await user.spawn('tokens create --allow create,update,delete')).out.trim()
    const through = ['strace', ...disk.tracer]
    const service = await serve([], { folder: user.home, env: {}, through })
    const connection = await connectTo(service.endpoint)
    const statuses = []
    for (const request of [
      { body: '{"id":1,"name":"Fern"}' },
      { method: 'PATCH', target: '/plants/1', body: '{"name":"Moss"}' },
      { method: 'DELETE', target: '/plants/1' },
    ])
      statuses.push(
        (await connection.send(buildRequest(token, request)).readAnswer(request))?.status,
      )
    const traced = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8')
    process.kill(parseInt(traced, 10), 'SIGTERM')
    const { code } = await service.ended
    const { told, early } = disk.review()
    const answers = told.filter(({ stream }) => stream === 'socket')
    expect([code, statuses, early]).toEqual([0, [200, 200, 200], []])
    expect(answers.map(({ synced }) => synced.includes(log))).toEqual([true, true, true])
  })
})

const names = {
  write: ['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'ftruncate', 'sendto', 'sendmsg'],
  sync: ['fsync', 'fdatasync'],
  make: ['open', 'openat', 'creat', 'mkdir', 'mkdirat'],
  rename: ['rename', 'renameat', 'renameat2'],
  remove: ['unlink', 'unlinkat', 'rmdir'],
} as const

type What = keyof typeof names
const kinds = Object.keys(names) as What[]

/**
 * Follows what a program does with the files of a directory from now on. Relative paths are in this
 * directory.
 *
 * @param log the file that strace writes, outside of the directory
 */
function followDisk(directory: string, log: string) {
  const there = readdirSync(directory, { recursive: true })
  const existing = new Set(there.map((name) => join(directory, String(name))))
  // A call that not every machine has is marked with "?".
  const calls = Object.values(names).flatMap((all) => all.map((name) => `?${name}`))
  return {
    tracer: ['-f', '-y', '-s', '0', '-o', log, '-e', `trace=${[...calls, 'fcntl'].join()}`],
    review: () => reviewTrace(readFileSync(log, 'utf8'), directory, existing),
  }
}

/** The calls in the order of their ends. Other threads may run between the lines of a call. */
function callsIn(trace: string): string[] {
  const unfinished = new Map<string, string>()
  return trace.split('\n').flatMap((line) => {
    const [, thread = '', call = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, started] = /^(.*) <unfinished \.\.\.>$/.exec(call) ?? []
    const [, resumed] = /^<\.\.\. \w+ resumed>(.*)$/.exec(call) ?? []
    if (started !== undefined) unfinished.set(thread, started)
    if (resumed !== undefined) return [`${unfinished.get(thread)}${resumed}`]
    return started === undefined ? [call] : []
  })
}

const succeeded = /^(?<name>\w+)\((?<fd>\d*)(?:<(?<open>.*?)>)?.*\) += \d+(?:<(?<opened>.*)>)?/

/**
 * What need not outlast a crash: locks, SQLite's shared memory, caches, and files until they are
 * renamed.
 */
const isTemporary = (path: string) =>
  /-shm$|\.lock(?:$|\/)|\/\.cache(?:$|\/)|\/\.[^/]*plants-/.test(path)

/**
 * @returns each write to a stream, with the files and directories that were synced since the one
 * before; and what was
 *   told or renamed before the files that it is about were on disk. Paths are relative.
 */
function reviewTrace(trace: string, directory: string, existing: Set<string>) {
  const told: { stream: string; synced: string[] }[] = []
  const early: string[] = []
  /** the files whose data, and the new names that are not on disk, and the files that had data */
  const [data, entries, filled] = [new Set<string>(), new Set<string>(), new Set<string>()]
  /** what was synced since a stream was written to */
  const streams = ['stdout', 'stderr', 'socket']
  const synced = new Map(streams.map((stream) => [stream, new Set<string>()]))
  const short = (path: string) => relative(directory, path) || '.'
  const isPublic = (path: string) => path.startsWith(`${directory}/`) && !isTemporary(path)
  /** An empty log of SQLite may be lost. */
  const isNeeded = (path: string) => isPublic(path) && (filled.has(path) || !path.endsWith('-wal'))
  const forget = (gone: string) => {
    for (const known of [data, entries, existing]) known.delete(gone)
  }

  const take: Record<What, (path: string, target: string) => void> = {
    write: (path) => {
      const since = synced.get(path)
      if (since === undefined) {
        data.add(path)
        filled.add(path)
        return
      }
      told.push({ stream: path, synced: [...since] })
      since.clear()
      for (const each of [...data].filter(isPublic))
        early.push(`${path} before the data of ${short(each)}`)
      for (const each of [...entries].filter(isNeeded))
        early.push(`${path} before the name of ${short(each)}`)
    },
    sync: (path) => {
      data.delete(path)
      for (const name of entries) if (dirname(name) === path) entries.delete(name)
      for (const paths of synced.values()) paths.add(short(path))
    },
    make: (path) => {
      if (!existing.has(path)) entries.add(path)
      existing.add(path)
    },
    rename: (path, target) => {
      const hasData = data.has(path)
      if (hasData && isPublic(target)) early.push(`rename before the data of ${short(target)}`)
      forget(target)
      forget(path)
      if (hasData) data.add(target)
      existing.add(target)
      entries.add(target)
    },
    remove: forget,
  }

  // Bun writes to a copy of the descriptor of stdout or stderr.
  const copies = trace.matchAll(/\b\w+\(([12])<((?:socket|pipe):[^>]*)>/g)
  const descriptors = new Map(Array.from(copies, ([, fd, open]) => [open, fd]))
  for (const call of callsIn(trace)) {
    const { name, fd = '', open, opened } = succeeded.exec(call)?.groups ?? {}
    const what = kinds.find((kind) => names[kind].some((each) => each === name))
    if (what === undefined || (opened !== undefined && !/^creat|O_CREAT/.test(call))) continue
    const quoted = Array.from(call.matchAll(/"([^"]+)"/g), ([, path = '']) => path)
    const [first, target = ''] = quoted.map((path) => resolve(directory, path))
    const standard = { 1: 'stdout', 2: 'stderr' }[descriptors.get(open) ?? fd]
    const written = standard ?? open?.replace(/^socket:.*/, 'socket')
    const path = opened ?? (fd === '' ? first : written)
    if (path !== undefined) take[what](path, target)
  }
  return { told, early }
}
