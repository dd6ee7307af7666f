import { describe, expect, test, vi } from 'vitest'
import { allCreated, digestOf, plantLines, shuffled } from '../../helpers/import.js'
import { MortalService } from '../../helpers/mortal-service.js'
import { plants } from '../../helpers/process.js'
import { socketPath } from '../../helpers/remote.js'
import { RemoteImport, type RemoteResult } from '../../helpers/remote-import.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const count = isSoak ? 200_000 : 10_000
/** how often the import is killed until it may come to its end, and its service meanwhile */
const kills = 5
/** milliseconds from the start of an import, or of its service, in which it is killed */
const longest = isSoak ? 12_000 : 1500
const good = plantLines(count)

interface Scenario {
  /** the flags of `plants serve` */
  place: string[]
  lines: readonly string[]
  flags?: string[]
  /** of the export at the end, where that is not the good lines */
  exported?: readonly string[]
  /** in the order of the input, where a file is to hold them */
  rejected?: { line: number; text: string; error: number }[]
}

describe('an import and its service, both killed at random, go on, and at the end the store holds exactly the input:', {
  timeout: rounds(isSoak ? 400_000 : 240_000),
}, () => {
  test('ids in order, at a port', async () => {
    await killAndGoOn(() => ({ place: ['--port', '0'], lines: good }))
  })

  test('ids in no order, with rejected lines, at a socket', async () => {
    const input = withRejected(shuffled(good))
    await killAndGoOn(() => ({ place: ['--socket', socketPath()], ...input }))
  })

  test('CSV with line breaks in its cells, numbered as it comes', async () => {
    const plant = (index: number) => ({ name: `Fern\nnumber ${index}`, tag: `${index % 7} "o'clock"` })
    const records = good.map((_, index) => `"${plant(index).name}","${plant(index).tag.replaceAll('"', '""')}"`)
    const exported = good.map((_, index) => JSON.stringify({ id: index + 1, ...plant(index) }))
    const flags = ['--format', 'csv', '--id-from', 'next']
    const place = ['--port', '0', '--allow', 'create,read']
    await killAndGoOn(() => ({ place, lines: ['name,tag', ...records], flags, exported }))
  })
})

/** Lines of every kind that is rejected, among others; those whose id is taken stand far behind the one that has it. */
function withRejected(input: readonly string[]): Required<Pick<Scenario, 'lines' | 'rejected'>> {
  const kinds = [
    { error: 422, from: 0, textOf: () => '{"id":1.5,"name":"Half"}' },
    { error: 400, from: 0, textOf: () => 'not JSON' },
    {
      error: 409,
      from: 2000,
      textOf: (index: number) => (input[index % 500] ?? '').replace('"name":"', '"name":"Another '),
    },
  ]
  const rejected: { line: number; text: string; error: number }[] = []
  const lines: string[] = []
  for (const [index, line] of input.entries()) {
    lines.push(line)
    const { error, from, textOf } = kinds[index % 100] ?? { error: 0, from: Infinity, textOf: String }
    if (index < from) continue
    lines.push(textOf(index))
    rejected.push({ line: lines.length, text: textOf(index), error })
  }
  return { lines, rejected }
}

/**
 * Kills imports and their services until enough imports have gone on in the middle. Each is brought to its end, and
 * looked at.
 */
async function killAndGoOn(make: () => Scenario): Promise<void> {
  for (let goneOn = 0; goneOn < rounds(1); ) {
    const { place, lines, flags = [], exported = good, rejected } = make()
    const home = temporaryFolder()
    const service = await MortalService.start(home, place)
    const run = new RemoteImport(lines, service.address, ...flags, ...(rejected ? ['--rejects', 'rejects'] : []))
    const [end] = await Promise.all([
      killUntilDone(run).finally(() => service.stop()),
      service.liveAndDie(kills, longest),
    ])
    goneOn += end.goneOn
    judge(end, rejected ?? [])
    expect(digestOf((await plants(['export'], home)).out)).toBe(digestOf(`${exported.join('\n')}\n`))
    if (rejected) judgeRejects(run, rejected)
  }
}

/**
 * Runs the same command until it comes to its end, and kills it some times: after a while, and just after a part is
 * done.
 */
async function killUntilDone(run: RemoteImport): Promise<RemoteResult & { goneOn: number }> {
  let goneOn = 0
  for (let kill = 0; ; kill += 1) {
    const clock = { timeout: 1 + Math.random() * longest, killSignal: 'SIGKILL' } as const
    const child = run.startWith(kill < kills && kill % 2 === 0 ? clock : {}, '--timeout', '2m', '--retry', '2m')
    if (kill < kills && kill % 2 === 1) await killAtPosition(run, child)
    const result = run.resultOf(await child)
    if (result.err.includes('Resuming an interrupted import')) goneOn += 1
    // Who has told its end has done its work, although it is killed while it leaves.
    if (result.code !== 'SIGKILL' || result.counts) return { ...result, goneOn }
  }
}

/** Does nothing if the import ends before. */
async function killAtPosition(run: RemoteImport, child: ReturnType<RemoteImport['start']>): Promise<void> {
  const isOver = () => child.exitCode !== null || run.hasPosition
  await vi.waitUntil(isOver, { interval: 5, timeout: 120_000 })
  child.kill('SIGKILL')
}

function judge({ code, counts, journals }: RemoteResult, rejected: NonNullable<Scenario['rejected']>): void {
  const errors = rejected.map(({ error }) => error)
  const reasons = Object.fromEntries(
    [...new Set(errors)].map((error) => [error, errors.filter((other) => other === error).length]),
  )
  const isKilled = code === 'SIGKILL'
  expect({ code, counts, journals }).toEqual({
    code: isKilled ? code : rejected.length > 0 ? 6 : 0,
    counts: { ...allCreated(count), rejected: rejected.length, reasons },
    journals: isKilled ? journals : 0,
  })
}

function judgeRejects(run: RemoteImport, rejected: NonNullable<Scenario['rejected']>): void {
  expect(run.read('rejects') === rejected.map(({ text }) => `${text}\n`).join('')).toBe(true)
  const reasons = run.reasons('rejects').map(({ line, error }) => ({ line, error }))
  expect(reasons).toEqual(rejected.map(({ line, error }) => ({ line, error })))
}
