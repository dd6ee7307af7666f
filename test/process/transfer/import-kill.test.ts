import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  allCreated,
  type Counts,
  countsOf,
  digestOf,
  integrityOf,
  journalsIn,
  plantLines,
  shuffled,
  writeLines,
} from '../../helpers/import.js'
import { canTrace, killAt } from '../../helpers/linux.js'
import { type Database, freshDatabase } from '../../helpers/postgres.js'
import { type ProcessResult, plants, start, startUnder } from '../../helpers/process.js'
import { isSoak, nextPlace, rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const count = isSoak ? 1_000_000 : 120_000
const sorted = plantLines(count)

describe('an import that is killed at random goes on, and at the end its store holds exactly the input:', {
  timeout: rounds(120_000),
}, () => {
  test('ids in order', async () => {
    await killAndGoOn({ lines: sorted, flags: [], counts: allCreated(count) })
  })

  test('ids in no order, to be skipped when they are there', async () => {
    const lines = withRepeats(shuffled(sorted))
    const skipped = lines.length - count
    await killAndGoOn({ lines, flags: ['--if-exists', 'skip'], counts: { ...allCreated(count), skipped } })
  })

  test('ids in order, with rejected lines', async () => {
    await killAndGoOn(withRejected(sorted, []))
  })

  test('ids in no order, with rejected lines, and equal plants to be skipped', async () => {
    await killAndGoOn(withRejected(shuffled(sorted), ['--if-exists', 'same']))
  })

  test('ids in no order, with rejected lines, in a database', async () => {
    await killAndGoOn(withRejected(shuffled(sorted), []), freshDatabase)
  })
})

interface Scenario {
  lines: string[]
  flags: string[]
  counts: Counts
  /** in the order of the input, where a file is to hold them */
  rejected?: { line: number; text: string; error: number }[]
}

/** Every so often a plant again that has come before. */
function withRepeats(lines: readonly string[]): string[] {
  return lines.flatMap((line, index) => (index % 300 === 299 ? [line, lines[index - 200] ?? ''] : [line]))
}

/** Lines of every kind that is rejected, among others. */
function withRejected(good: readonly string[], flags: string[]): Scenario {
  const equal = { error: flags.length === 0 ? 409 : undefined, textOf: (before: string) => before }
  const kinds: Record<number, { error: number | undefined; textOf(before: string): string }> = {
    100: { error: 422, textOf: () => '{"id":1.5,"name":"Half"}' },
    200: { error: 400, textOf: () => 'not JSON' },
    300: { error: 409, textOf: (before) => before.replace('"name":"', '"name":"Another ') },
    400: equal,
  }
  const lines: string[] = []
  const rejected: NonNullable<Scenario['rejected']> = []
  const counts = allCreated(good.length)
  for (const [index, line] of good.entries()) {
    lines.push(line)
    const kind = kinds[index % 700]
    if (!kind) continue
    const text = kind.textOf(good[Math.floor(index / 2)] ?? line)
    lines.push(text)
    if (kind.error === undefined) counts.skipped += 1
    else rejected.push({ line: lines.length, text, error: kind.error })
  }
  for (const { error } of rejected) counts.reasons[error] = (counts.reasons[error] ?? 0) + 1
  return { lines, flags, counts: { ...counts, rejected: rejected.length }, rejected }
}

/** Kills imports until enough of them have gone on in the middle. Every one is brought to its end, and looked at. */
async function killAndGoOn(
  { lines, flags, counts, rejected }: Scenario,
  database?: () => Promise<Pick<Database, 'url' | 'env'>>,
): Promise<void> {
  const base = temporaryFolder()
  writeLines(base, lines)
  const rejects = rejected ? ['--rejects', 'rejects.ndjson'] : []
  let [goneOn, longest] = [0, 500]
  for (let round = 0; goneOn < rounds(1); round += 1) {
    const folder = join(base, `${round}`)
    mkdirSync(folder)
    const { url, env } = (await database?.()) ?? { url: join(folder, 'plants.db'), env: {} }
    const args = ['import', '../plants.ndjson', ...flags, ...rejects, '--store', url]
    const end = await untilDone(args, { folder, env }, () => Math.random() * longest)
    goneOn += end.goneOn
    longest = Math.max(end.longest, 300)
    const code = end.code === 'killed' ? 'killed' : rejected ? 6 : 0
    expect({ round, code: end.code, counts: end.out && countsOf(end.out) }).toEqual({ round, code, counts })
    if (code !== 'killed') expect(journalsIn(folder)).toEqual([])
    if (!database) expect(integrityOf(url)).toBe('ok')
    const exported = await plants(['export', '--store', url], folder, { env })
    expect(digestOf(exported.out)).toBe(digestOf(`${sorted.join('\n')}\n`))
    if (rejected) judgeRejects(folder, rejected)
  }
}

function judgeRejects(folder: string, rejected: NonNullable<Scenario['rejected']>): void {
  const records = readFileSync(join(folder, 'rejects.ndjson'), 'utf8').split('\n')
  expect(records).toEqual([...rejected.map(({ text }) => text), ''])
  const reasons = readFileSync(join(folder, 'rejects.ndjson.reasons'), 'utf8').split('\n').slice(0, -2)
  const told = reasons.map((reason) => JSON.parse(reason) as { file: string; line: number; error: number })
  expect(told.map(({ file, line, error }) => ({ file, line, error }))).toEqual(
    rejected.map(({ line, error }) => ({ file: '../plants.ndjson', line, error })),
  )
}

/** Runs the same command until it comes to its end, and kills it after a while each time. */
async function untilDone(
  args: string[],
  { folder, env }: { folder: string; env: Database['env'] },
  chooseDelay: () => number,
) {
  for (let [goneOn, kills] = [0, 0]; ; kills += 1) {
    const began = performance.now()
    // Longer after each kill: where a start alone takes long, it would never come to its end.
    const timeout = chooseDelay() * (1 + kills / 10)
    const run = start(args, folder, { cwd: folder, env, timeout, killSignal: 'SIGKILL' })
    const { exitCode: code, signal, stdout, stderr } = await run
    const out = String(stdout)
    if (String(stderr).includes('Resuming an interrupted import')) goneOn += 1
    // Who has told its end has done its work, although it is killed while it leaves.
    if (signal !== 'SIGKILL' || out !== '')
      return { code: code ?? 'killed', out, goneOn, longest: performance.now() - began }
  }
}

describe.runIf(canTrace)(
  'an import that is killed before a system call on its files, each in its turn (needs strace)',
  () => {
    const calls = [
      'write',
      'pwrite64',
      'fsync',
      'fdatasync',
      '?rename,renameat,renameat2',
      '?unlink,unlinkat',
      'openat',
      'ftruncate',
    ]
    const long = 'long '.repeat(14_000)
    const good = plantLines(12).map((line, index) =>
      index % 3 === 1 ? line.replace('"name":"', `"name":"${long}`) : line,
    )
    const lines = good.flatMap((line, index) =>
      index % 4 === 3 ? [line, `bad ${index}`, line.replace('"name":"', '"name":"!')] : [line],
    )
    const rejected = lines.flatMap((line, index) =>
      line.startsWith('bad') || line.includes('"name":"!') ? [{ line, number: index + 1 }] : [],
    )
    const args = ['import', 'plants.ndjson', '--rejects', 'rejects.ndjson']

    const moss = '{"id":7,"name":"Moss"}\n'

    test.each<[string, string[]]>([
      ['finds its store', ['7']],
      ...(isSoak ? [['makes its store', []] satisfies [string, string[]]] : []),
    ])('and that %s, goes on with the same command', { timeout: 600_000 }, async (_, ids) => {
      const base = temporaryFolder()
      const before = join(base, 'before')
      mkdirSync(before)
      writeLines(before, lines)
      for (const id of ids) await plants(['create', '--id', id, '--name', 'Moss'], before)
      const results = await Promise.allSettled(
        calls.map((call, index) => killAtEach(call, join(base, `${index}`), before)),
      )
      for (const result of results) if (result.status === 'rejected') throw result.reason
      const hits = results.map((result) => (result.status === 'fulfilled' ? result.value : 0))
      expect(Object.fromEntries(calls.map((call, index) => [call, (hits[index] ?? 0) > 0]))).toEqual(
        Object.fromEntries(calls.map((call) => [call, true])),
      )
    })

    /** Gives how many runs were hit; `nextPlace` says which calls are left out. */
    async function killAtEach(call: string, base: string, before: string): Promise<number> {
      let hits = 0
      for (let when = 1; ; when = nextPlace(when)) {
        const folder = `${base}-${when}`
        cpSync(before, folder, { recursive: true })
        const run = await importUnderTrace(call, when, folder)
        if (!run.isKilled) {
          await judge(run, { call, when, folder })
          return hits
        }
        if (run.out === '') await judge(await plants(args, folder, { cwd: folder }), { call, when, folder })
        hits += 1
      }
    }

    async function importUnderTrace(
      call: string,
      when: number,
      folder: string,
    ): Promise<ProcessResult & { isKilled: boolean }> {
      const [store, rejects] = [join(folder, 'data/plants.db'), join(folder, 'rejects.ndjson')]
      const paths = [store, `${store}-journal`, `${store}-wal`, `${store}-shm`, rejects, `${rejects}.reasons`]
      const filter = call === 'write' || call.includes('rename') ? [] : paths.flatMap((path) => ['-P', path])
      const strace = [...killAt(call, when), ...filter]
      const { exitCode, signal, stdout, stderr } = await startUnder('strace', strace, args, folder, { cwd: folder })
      return { code: exitCode, out: String(stdout), err: String(stderr), isKilled: signal === 'SIGKILL' }
    }

    async function judge(
      { code, out }: ProcessResult,
      place: { call: string; when: number; folder: string },
    ): Promise<void> {
      const { folder } = place
      expect({ ...place, code, out: out && countsOf(out) }).toEqual({
        ...{ ...place, code: 6 },
        out: {
          created: good.length,
          skipped: 0,
          rejected: rejected.length,
          reasons: { 400: rejected.length / 2, 409: rejected.length / 2 },
          unknown: 0,
        },
      })
      expect(
        readFileSync(join(folder, 'rejects.ndjson'), 'utf8') === rejected.map(({ line }) => `${line}\n`).join(''),
      ).toBe(true)
      const reasons = readFileSync(join(folder, 'rejects.ndjson.reasons'), 'utf8').split('\n').slice(0, -2)
      expect(reasons.map((reason) => (JSON.parse(reason) as { line: number }).line)).toEqual(
        rejected.map(({ number }) => number),
      )
      expect(integrityOf(join(folder, 'data/plants.db'))).toBe('ok')
      expect(journalsIn(folder)).toEqual([])
      const exported = await plants(['export'], folder)
      expect(exported.out.replace(moss, '') === good.map((line) => `${line}\n`).join('')).toBe(true)
    }
  },
)
