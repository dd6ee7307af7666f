import { describe, expect, test } from 'vitest'
import {
  allCreated,
  countOf,
  countsOf,
  digestOf,
  journalsOf,
  plantLines,
  rejectedIn,
  shuffled,
  writeLines,
} from '../../helpers/import.js'
import { freshDatabase } from '../../helpers/postgres.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { serve, testToken } from '../../helpers/service.js'
import { World } from '../../helpers/world.js'

interface Target {
  store: string
  env: Record<string, string>
  stored(): number | Promise<number>
  /** of the store, where the import goes on meanwhile */
  kill?(): Promise<void>
  end(): Promise<string>
}

async function file(): Promise<Target> {
  const world = new World()
  const store = `${world.home}/plants.db`
  const end = async () => (await world.run(`export --store ${store}`)).out
  return { store, env: {}, stored: () => countOf(store), end }
}

async function database(): Promise<Target> {
  const { url: store, env, sql } = await freshDatabase()
  const world = new World()
  await world.run(['stores', 'init', store], { env })
  const stored = async () =>
    Number((await sql('SELECT count(*) AS count FROM plant_store.plants'))[0]?.['count'])
  return {
    store,
    env,
    stored,
    end: async () => (await world.run(['export', '--store', store], { env })).out,
  }
}

/** A service as a process, which is killed and started again in its place. */
async function service(): Promise<Target> {
  const world = new World()
  const flags = ['--allow', 'create,read,update']
  let running = await serve(flags, { folder: world.home })
  const { address: store } = running
  const args = ['--port', new URL(store).port, ...flags]
  const kill = async () => {
    await running.stop('SIGKILL')
    running = await serve(args, { folder: world.home })
  }
  const end = async () => {
    await running.stop('SIGKILL')
    return (await world.run('export')).out
  }
  return { store, env: { PLANTS_TOKEN: testToken }, stored: () => countOf(world.store), kill, end }
}

interface Input {
  lines: string[]
  flags: string
  /** of the export at the end */
  exported: readonly string[]
  skipped?: number
  /** in the order of the input */
  rejected?: { line: number; text: string; error: number }[]
}

const sorted = plantLines(isSoak ? 1_000_000 : 100_000)

/** Lines of every kind that is rejected, among others. */
function withRejected(): Input {
  const good = shuffled(sorted)
  const lines: string[] = []
  const rejected: NonNullable<Input['rejected']> = []
  for (const [index, line] of good.entries()) {
    lines.push(line)
    const earlier = good[index % 500] ?? ''
    const kinds: [text: string, error: number][] = [
      ['{"id":1.5,"name":"Half"}', 422],
      ['not JSON', 400],
      [earlier.replace('"name":"', '"name":"Other '), 409],
    ]
    const [text, error] = (index < 2000 ? undefined : kinds[index % 100]) ?? []
    if (text === undefined || error === undefined) continue
    lines.push(text)
    rejected.push({ line: lines.length, text, error })
  }
  return { lines, flags: '--rejects rejects', exported: sorted, rejected }
}

/** CSV with line breaks in its cells, numbered as it comes. */
function numbered(): Input {
  const names = Array.from(
    { length: isSoak ? 200_000 : 5000 },
    (_, index) => `Fern\nnumber ${index}`,
  )
  const exported = names.map((name, index) => JSON.stringify({ id: index + 1, name }))
  return {
    lines: ['name', ...names.map((name) => `"${name}"`)],
    flags: '--format csv --id-from next',
    exported,
  }
}

/** A list in which some names come again later, and others at once, matched by name. A part of a file is 1 MiB. */
function named(flags: string, count = isSoak ? 500_000 : 20_000, length = 107): Input {
  const names = Array.from({ length: count }, (_, index) => `Fern ${index}`.padEnd(length, '.'))
  const again = names.flatMap((name, index) => {
    const earlier = index % 7 === 0 ? [names[(index * 31) % (index + 1)] ?? ''] : []
    return index % 5 === 0 ? [name, name, ...earlier] : [name, ...earlier]
  })
  const exported = names.map((name, index) => JSON.stringify({ id: index + 1, name }))
  const byName = `--format csv --id-from next --match name ${flags}`
  return {
    lines: ['name', ...again],
    flags: byName,
    exported,
    skipped: again.length - names.length,
  }
}

describe('an import that is killed, or its service, resumes, and stores all once:', () => {
  test.each<[string, () => Promise<Target>, () => Input]>([
    ['ids in no order, into a file', file, withRejected],
    ['ids in no order, into a database', database, withRejected],
    ['CSV without ids, into a service', service, numbered],
    ['CSV by name, into a file', file, () => named('--if-exists same')],
    ['CSV by name, into a database', database, () => named('--if-exists skip')],
    [
      'CSV by name, into a service',
      service,
      () => named('--if-exists update', isSoak ? 100_000 : 5000, 0),
    ],
  ])('%s', async (_, makeTarget, makeInput) => {
    const input = makeInput()
    const target = await makeTarget()
    const world = new World()
    await importWithKills(world, target, input)
    expect(digestOf(await target.end())).toBe(digestOf(`${input.exported.join('\n')}\n`))
    if (input.rejected) judgeRejects(world, input.rejected)
  })
})

/** Later kills may find an import that was faster. */
async function importWithKills(world: World, target: Target, input: Input): Promise<void> {
  const args = `import plants.ndjson ${input.flags} --store ${target.store} --timeout 1h --retry 1h`
  const start = () => world.start(args, { env: target.env })
  const storesMoreThan = async (due: number, child: ReturnType<typeof start>) => {
    const isDue = async () => child.exitCode !== null || (await target.stored()) > due
    await expect.poll(isDue, { interval: 1 }).toBe(true)
  }
  writeLines(world.home, input.lines)
  let child = start()
  const kills = rounds(6)
  for (let kill = 1; ; kill += 1) {
    await storesMoreThan(kill < kills ? (kill / kills) * input.exported.length : Infinity, child)
    if (kill % 2 === 1 && target.kill) {
      await target.kill()
      continue
    }
    child.kill('SIGKILL')
    const { exitCode, signal, stdout, stderr } = await child
    if (signal !== 'SIGKILL' || stdout !== '')
      return judge(
        { code: exitCode ?? signal, out: String(stdout), journals: journalsOf(world) },
        input,
        String(stderr),
      )
    child = start()
  }
}

function judge(
  ended: { code: number | string | undefined; out: string; journals: string[] },
  input: Input,
  err: string,
): void {
  expect(ended.out, err).not.toBe('')
  const { exported, skipped = 0, rejected = [] } = input
  const reasons: Record<number, number> = {}
  for (const { error } of rejected) reasons[error] = (reasons[error] ?? 0) + 1
  const counts = {
    ...allCreated(exported.length),
    ...{ skipped, rejected: rejected.length },
    ...(rejected.length > 0 && { reasons }),
  }
  const code = rejected.length > 0 ? 6 : 0
  // Who has printed its end has done its work, although it is killed while it leaves.
  const end =
    ended.code === 'SIGKILL'
      ? { code: ended.code, journals: ended.journals }
      : { code, journals: [] }
  expect({ ...ended, out: countsOf(ended.out) }).toEqual({ ...end, out: counts })
}

function judgeRejects(world: World, rejected: NonNullable<Input['rejected']>): void {
  const found = rejectedIn(world, 'rejects').map(({ line, record }) => ({ line, record }))
  const record = (text: string) => (text.startsWith('{') ? JSON.parse(text) : text)
  expect(found).toEqual(rejected.map(({ line, text }) => ({ line, record: record(text) })))
}
