import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { canTrace } from '../../helpers/linux.js'
import { PlantService } from '../../helpers/plant-service.js'
import { plants, startUnder } from '../../helpers/process.js'
import { connectTo, requestBytes } from '../../helpers/raw-http.js'
import { serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const create = 'create --id 1 --name Fern'
const records = '{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n'
const log = 'data/plants.db-wal'
const settings = ['.config/plants', '.config', '.']
const journal = ['.local/state/plants', '.local/state', '.local', '.']
const both = ['stderr', 'stdout']

/** What must be synced before a command writes its answer, after others; and the streams that it writes to. */
const cases: [
  before: string[],
  command: string,
  synced: unknown[],
  told?: string[],
  code?: number,
][] = [
  [[], create, [log, 'data', '.']],
  [[], `${create} --store a.db`, ['a.db-wal', '.'], both],
  [[create], 'update 1 --name Moss', [log]],
  [[create], 'delete 1 --yes', [log]],
  [[], 'import input.ndjson', [log]],
  [[], 'import input.ndjson --atomic', [log]],
  [
    [`${create.replace('Fern', 'Oak')}`],
    'import input.ndjson --rejects rejects',
    [log, expect.stringMatching(/^\.plants-\w+\.tmp$/), '.'], // as what the rejects file was opened
    both,
    6,
  ],
  [[create], 'backup b.db', ['.']],
  [
    [create, 'backup b.db'],
    'restore b.db --store new.db',
    ['new.db-wal', '.'],
    ['stderr', 'stdout'],
  ],
  [[create, 'backup b.db'], 'restore b.db --yes', [log, 'data']],
  [[create], 'export out.ndjson', ['.']],
  [[], 'config set timeout 9s', settings],
  [[], 'tokens create', [log]],
]

/** The streams that were written to, in the order of the alphabet, and all that was synced before. */
function summaryOf(disk: ReturnType<typeof followDisk>) {
  const { told, early } = disk.review()
  const streams = [...new Set(told.map(({ stream }) => stream))].sort()
  return { told: streams, synced: told.flatMap((each) => each.synced), early }
}

test.runIf(canTrace)(
  'a trace shows what is renamed or told before it is on disk (needs strace)',
  async () => {
    const folder = temporaryFolder()
    const script = `
    const { fsyncSync, openSync, renameSync, rmSync, writeFileSync } = require('node:fs')
    const sync = (...paths) => paths.forEach((path) => fsyncSync(openSync(path)))
    writeFileSync('a', '1'), renameSync('a', 'b'), writeFileSync(1, 'b is there'), sync('b', '.')
    writeFileSync(2, 'b is on disk'), writeFileSync('c', '2'), writeFileSync('c-wal', '3'), rmSync('c-wal')
    sync('c', '.'), writeFileSync(1, 'c is on disk')`
    const disk = followDisk(folder, join(temporaryFolder(), 'log'))
    await execa('strace', [...disk.tracer, 'node', '--eval', script], { cwd: folder })
    expect(disk.review()).toEqual({
      told: [
        { stream: 'stdout', synced: [] },
        { stream: 'stderr', synced: ['b', '.'] },
        { stream: 'stdout', synced: ['b', '.', 'c'] },
      ],
      early: [
        'rename before the data of b',
        'stdout before the data of b',
        'stdout before the name of b',
        'removal of c-wal before the data of c',
      ],
    })
  },
)

describe.runIf(canTrace)(
  'what is on disk before a command prints something (needs strace):',
  () => {
    test.each(cases)(
      'after %j: %s',
      async (before, command, synced, told = ['stdout'], code = 0) => {
        const folder = temporaryFolder()
        for (const each of before)
          expect(await plants(each.split(' '), folder, { cwd: folder })).toMatchObject({ code: 0 })
        writeFileSync(join(folder, 'input.ndjson'), records)
        const disk = followDisk(folder, join(temporaryFolder(), 'log'))
        const { exitCode, stderr } = await startUnder(
          'strace',
          disk.tracer,
          command.split(' '),
          folder,
          { cwd: folder },
        )
        const expected = { exitCode: code, told, synced: expect.arrayContaining(synced), early: [] }
        expect({ exitCode, ...summaryOf(disk) }, String(stderr)).toEqual(expected)
      },
    )

    test('an import into a service', async () => {
      const folder = temporaryFolder()
      writeFileSync(join(folder, 'input.ndjson'), records)
      const service = await PlantService.listen()
      const disk = followDisk(folder, join(temporaryFolder(), 'log'))
      const args = ['import', 'input.ndjson', '--store', service.url]
      const options = { cwd: folder, env: { PLANTS_TOKEN: testToken } }
      const { exitCode } = await startUnder('strace', disk.tracer, args, folder, options)
      expect({ exitCode, ...summaryOf(disk) }).toEqual({
        exitCode: 0,
        told: ['socket', 'stdout'],
        synced: expect.arrayContaining([
          expect.stringMatching(/^\.local\/state\/plants\/imports\.db-wal$/),
          ...journal,
        ]),
        early: [],
      })
    })
  },
)

test.runIf(canTrace)('a service answers when the change is on disk (needs strace)', async () => {
  const folder = temporaryFolder()
  const token = (
    await plants(['tokens', 'create', '--allow', 'create,update,delete'], folder)
  ).out.trim()
  const disk = followDisk(folder, join(temporaryFolder(), 'log'))
  const service = await serve([], { folder, env: {}, through: ['strace', ...disk.tracer] })
  const connection = await connectTo(service.place)
  const statuses = []
  for (const request of [
    { body: '{"id":1,"name":"Fern"}' },
    { method: 'PATCH', target: '/plants/1', body: '{"name":"Moss"}' },
    { method: 'DELETE', target: '/plants/1' },
  ])
    statuses.push((await connection.send(requestBytes(token, request)).answer(request))?.status)
  const traced = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8')
  process.kill(parseInt(traced, 10), 'SIGTERM')
  const { code } = await service.ended
  const { told, early } = disk.review()
  const answers = told
    .filter(({ stream }) => stream === 'socket')
    .map(({ synced }) => synced.includes(log))
  const expected = { code: 0, statuses: [200, 200, 200], answers: [true, true, true], early: [] }
  expect({ code, statuses, answers, early }).toEqual(expected)
})

/** A system call that has not failed. Other threads may run between the lines of the trace where it begins and ends. */
interface Call {
  what: What
  /** "stdout", "stderr" and "socket" are streams; all others begin with "/" */
  path: string
  /** of a rename */
  target: string
  begin: number
  end: number
}

const names = {
  write: ['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'ftruncate', 'sendto', 'sendmsg'],
  sync: ['fsync', 'fdatasync'],
  make: ['open', 'openat', 'creat', 'mkdir', 'mkdirat'],
  rename: ['rename', 'renameat', 'renameat2'],
  remove: ['unlink', 'unlinkat', 'rmdir'],
} as const

type What = keyof typeof names
const kinds = Object.keys(names) as What[]
/** A call that not every machine has is marked with "?". */
const traced = kinds.flatMap((kind) => names[kind].map((name) => `?${name}`))
const callPattern = /^(?<name>\w+)\((?<fd>\d*)(?:<(?<open>.*?)>)?.*\) += \d+(?:<(?<opened>.*)>)?/

/**
 * Follows what a program does with the files of a directory from now on. Relative paths are in this directory.
 *
 * @param log the file that strace writes, outside of the directory
 */
function followDisk(directory: string, log: string) {
  const existing = new Set(
    readdirSync(directory, { recursive: true }).map((name) => join(directory, String(name))),
  )
  return {
    tracer: ['-f', '-y', '-s', '0', '-o', log, '-e', `trace=${[...traced, 'fcntl'].join()}`],
    review: () => reviewCalls(callsOf(readFileSync(log, 'utf8'), directory), directory, existing),
  }
}

function callsOf(trace: string, directory: string): Call[] {
  // Bun writes to a copy of the descriptor of stdout or stderr.
  const opened = [...trace.matchAll(/\b\w+\((?<fd>[12])<(?<open>(?:socket|pipe):[^>]*)>/g)]
  const streams = new Map(
    opened.map(({ groups }) => [groups?.['open'], groups?.['fd'] === '1' ? 'stdout' : 'stderr']),
  )
  const unfinished = new Map<string, { text: string; begin: number }>()
  return trace.split('\n').flatMap((line, end) => {
    const { thread = '', call = '' } = /^(?<thread>\d+) +(?<call>.*)$/.exec(line)?.groups ?? {}
    const { started } = /^(?<started>.*) <unfinished \.\.\.>$/.exec(call)?.groups ?? {}
    if (started !== undefined) unfinished.set(thread, { text: started, begin: end })
    const { resumed } = /^<\.\.\. \w+ resumed>(?<resumed>.*)$/.exec(call)?.groups ?? {}
    const { text, begin } = (resumed !== undefined && unfinished.get(thread)) || {
      text: '',
      begin: end,
    }
    return started === undefined
      ? callOf(text + (resumed ?? call), directory, { streams, begin, end })
      : []
  })
}

interface Place {
  streams: ReadonlyMap<string | undefined, string>
  begin: number
  end: number
}

function callOf(text: string, directory: string, { streams, begin, end }: Place): Call[] {
  const { name, fd, open, opened } = callPattern.exec(text)?.groups ?? {}
  const what = kinds.find((kind) => names[kind].some((each) => each === name))
  if (what === undefined || (opened !== undefined && !/^creat|O_CREAT/.test(text))) return []
  const quoted = [...text.matchAll(/"(?<path>[^"]+)"/g)]
  const [first, target = ''] = quoted.map(({ groups }) =>
    resolve(directory, groups?.['path'] ?? ''),
  )
  const stream =
    { 1: 'stdout', 2: 'stderr' }[fd ?? ''] ??
    streams.get(open) ??
    open?.replace(/^socket:.*/, 'socket')
  const path = opened ?? (fd === '' ? first : stream)
  return path === undefined ? [] : [{ what, path, target, begin, end }]
}

/**
 * What need not outlast a crash: locks, SQLite's shared memory, caches, and temporary files, until they are renamed.
 */
const isTemporary = (path: string) =>
  /-shm$|\.lock(?:$|\/)|\/\.cache(?:$|\/)|\/\.[^/]*plants-/.test(path)

/**
 * @returns each write to a stream, with the files and directories that were synced since the one before; and what was
 *   told, renamed or removed before the files that it is about were on disk. Paths are relative.
 */
function reviewCalls(calls: Call[], directory: string, existing: Set<string>) {
  const told: { stream: string; synced: string[] }[] = []
  const early = new Set<string>()
  /** what is not on disk: the files with new data, and the new names, with the line where the call ended */
  const data = new Map<string, number>()
  const entries = new Map<string, number>()
  /** by stream */
  const synced = { stdout: new Set<string>(), stderr: new Set<string>(), socket: new Set<string>() }
  const filled = new Set<string>()
  const short = (path: string) => relative(directory, path) || '.'
  const isPublic = (path: string) => path.startsWith(`${directory}/`) && !isTemporary(path)
  /** An empty log of SQLite may be lost. */
  const isNeeded = (path: string) => isPublic(path) && (filled.has(path) || !path.endsWith('-wal'))
  const forget = (gone: string) => {
    for (const known of [data, entries, existing]) known.delete(gone)
  }
  const tell = (stream: keyof typeof synced) => {
    told.push({ stream, synced: [...synced[stream]] })
    synced[stream].clear()
    for (const path of [...data.keys()].filter(isPublic))
      early.add(`${stream} before the data of ${short(path)}`)
    for (const path of [...entries.keys()].filter(isNeeded))
      early.add(`${stream} before the name of ${short(path)}`)
  }
  const isStream = (path: string): path is keyof typeof synced => Object.hasOwn(synced, path)

  const begin: Partial<Record<What, (call: Call) => void>> = {
    write: ({ path }) =>
      path.startsWith('/') ? data.set(path, Infinity) : isStream(path) && tell(path),
    rename: ({ path, target }) => {
      if (isPublic(target) && data.has(path))
        early.add(`rename before the data of ${short(target)}`)
    },
    remove: ({ path }) => {
      const database = path.replace(/-(wal|journal)$/, '')
      if (database !== path && isPublic(path) && data.has(database))
        early.add(`removal of ${short(path)} before the data of ${short(database)}`)
    },
  }
  const end: Record<What, (call: Call) => void> = {
    write: (call) =>
      call.path.startsWith('/') && filled.add(call.path) && data.set(call.path, call.end),
    // It covers what was written before it began.
    sync: (call) => {
      if ((data.get(call.path) ?? Infinity) < call.begin) data.delete(call.path)
      for (const [name, made] of entries)
        if (dirname(name) === call.path && made < call.begin) entries.delete(name)
      for (const paths of Object.values(synced)) paths.add(short(call.path))
    },
    make: (call) => {
      if (!existing.has(call.path)) entries.set(call.path, call.end)
      existing.add(call.path)
    },
    rename: (call) => {
      const time = data.get(call.path)
      forget(call.target)
      forget(call.path)
      if (time !== undefined) data.set(call.target, time)
      existing.add(call.target)
      entries.set(call.target, call.end)
    },
    remove: (call) => forget(call.path),
  }
  const moments = calls.flatMap((call) => [
    { line: call.begin, take: () => begin[call.what]?.(call) },
    { line: call.end + 0.5, take: () => end[call.what](call) },
  ])
  for (const { take } of moments.sort((one, other) => one.line - other.line)) take()
  return { told, early: [...early] }
}
