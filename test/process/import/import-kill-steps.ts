import { expect } from 'vitest'
import {
  buildPlantLine,
  buildPlantLines,
  countPlants,
  ImportSandbox,
  parseCounts,
  shuffle,
  writeLines,
} from '../../helpers/sandbox/import-sandbox.js'
import { isSoak, scaleRounds } from '../../helpers/sandbox/rounds.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { buildRows, buildWorkbook } from '../../helpers/sandbox/workbook.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'

export const [few, many, most] = isSoak ? [100_000, 500_000, 1_000_000] : [3000, 15_000, 40_000]

export interface Target {
  store: string
  env: Record<string, string>
  stored(): number | Promise<number>
  /** Of the store, where the import goes on meanwhile. */
  kill?(): Promise<void>
  end(): Promise<string>
}

export async function file(): Promise<Target> {
  const sandbox = new Sandbox()
  const store = `${sandbox.home}/plants.db`
  const end = async () => (await sandbox.run(`export --store ${store}`)).out
  return { store, env: {}, stored: () => countPlants(store), end }
}

/** A service as a process, which is killed and started again in its place. */
export async function service(): Promise<Target> {
  const sandbox = new Sandbox()
  const flags = ['--allow', 'create,read,update']
  let running = await serve(flags, { folder: sandbox.home })
  const { address: store } = running
  const args = ['--port', new URL(store).port, ...flags]
  const kill = async () => {
    await running.stop('SIGKILL')
    running = await serve(args, { folder: sandbox.home })
  }
  const end = async () => {
    await running.stop('SIGKILL')
    return (await sandbox.run('export')).out
  }
  return {
    store,
    env: { PLANTS_TOKEN: testToken },
    stored: () => countPlants(sandbox.store),
    kill,
    end,
  }
}

interface Input {
  lines: string[]
  /** What has these lines, instead of a file of text. */
  workbook?: Buffer
  flags: string
  /** Of the export at the end. */
  exported: readonly string[]
  /** In the order of the input. */
  rejected?: { line: number; record: unknown; error: number }[]
}

/** Lines in no order, and after some of them one that is rejected. */
export function withRejected(count: number): Input {
  const exported = buildPlantLines(count)
  const good = shuffle(exported)
  const lines: string[] = []
  const rejected: NonNullable<Input['rejected']> = []
  for (const [index, line] of good.entries()) {
    lines.push(line)
    const kinds: [text: string, error: number][] = [
      ['{"id":1.5,"name":"Half"}', 422],
      ['not JSON', 400],
      [(good[index % 500] ?? '').replace('"name":"', '"name":"Other '), 409],
    ]
    const [text = '', error = 0] = (index < 2000 ? undefined : kinds[index % 100]) ?? []
    if (text === '') continue
    lines.push(text)
    const record = error === 400 ? text : JSON.parse(text)
    rejected.push({ line: lines.length, record, error })
  }
  return { lines, flags: '--rejects rejects', exported, rejected }
}

/** A table without ids, with line breaks in its cells. */
export function numbered(): Input {
  const names = Array.from({ length: isSoak ? 200_000 : 3000 }, (_, index) => `Fern\nNo ${index}`)
  const exported = names.map((name, index) => buildPlantLine(index + 1, name).trimEnd())
  const lines = ['name', ...names.map((name) => `"${name}"`)]
  return { lines, flags: '--format csv --by-name', exported }
}

export function tableOfWorkbook(): Input {
  const count = isSoak ? 200_000 : 20_000
  const names = Array.from({ length: count }, (_, index) => `Fern ${index}`)
  const cells = [['id', 'name'], ...names.map((name, index) => [String(index + 1), name])]
  return {
    lines: [],
    workbook: buildWorkbook({ sheets: { Plants: cells.map((row) => buildRows(row)).join('') } }),
    flags: '--if-exists same',
    exported: names.map((name, index) => buildPlantLine(index + 1, name).trimEnd()),
  }
}

/** A list in which some names come again later, and others at once. */
export function named(flags: string, count: number, length: number): Input {
  const names = Array.from({ length: count }, (_, index) => `Fern ${index}`.padEnd(length, '.'))
  const again = names.flatMap((name, index) => {
    const earlier = index % 7 === 0 ? [names[(index * 31) % (index + 1)] ?? ''] : []
    return index % 5 === 0 ? [name, name, ...earlier] : [name, ...earlier]
  })
  return {
    lines: ['name', ...again],
    flags: `--format csv --by-name ${flags}`,
    // Each record is a plant, also where it repeats an earlier one.
    exported: again.map((name, index) => buildPlantLine(index + 1, name).trimEnd()),
  }
}

/** Imports with kills, and expects that the import is repeated and stores each plant once. */
export async function expectEachPlantOnce(target: Target, input: Input): Promise<void> {
  const { exported, rejected = [] } = input
  const user = new ImportSandbox()
  const { out, code } = await importWithKills(user, target, input)
  expect((await target.end()) === `${exported.join('\n')}\n`).toBe(true)
  const reasons: Record<number, number> = {}
  for (const { error } of rejected) reasons[error] = (reasons[error] ?? 0) + 1
  const counts = parseCounts(out)
  expect((counts.created ?? 0) + (counts.skipped ?? 0)).toBe(exported.length)
  expect(counts.rejected).toEqual(rejected.length > 0 ? reasons : undefined)
  // Who has printed its end has done its work, although it is killed while it leaves.
  expect(code).toBeOneOf([rejected.length > 0 ? 6 : 0, 'SIGKILL'])
  if (rejected.length === 0) return
  const found = user.readRejected('rejects').map(({ line, record }) => ({ line, record }))
  expect(found).toEqual(rejected.map(({ line, record }) => ({ line, record })))
}

/** Later kills may find an import that was faster. */
async function importWithKills(sandbox: Sandbox, target: Target, input: Input) {
  const name = input.workbook ? 'plants.xlsx' : 'plants.ndjson'
  const args = `import ${name} ${input.flags} --store ${target.store} --timeout 1h --retry 1h`
  if (input.workbook) sandbox.write(name, input.workbook)
  else writeLines(sandbox.home, input.lines)
  const kills = scaleRounds(4)
  let child = sandbox.start(args, { env: target.env })
  for (let kill = 1; ; kill += 1) {
    const due = kill < kills ? (kill / kills) * input.exported.length : Infinity
    const isDue = async () => child.exitCode !== null || (await target.stored()) > due
    await expect.poll(isDue, { interval: 1 }).toBe(true)
    if (kill % 2 === 1 && target.kill) {
      await target.kill()
      continue
    }
    // An import that is killed after its last commit may have named its rejects file.
    child.kill('SIGSTOP')
    const isFinished = (await target.stored()) >= input.exported.length
    child.kill(isFinished ? 'SIGCONT' : 'SIGKILL')
    const { exitCode, signal, stdout, stderr } = await child
    if (signal !== 'SIGKILL' || stdout !== '') {
      expect(stdout, String(stderr)).not.toBe('')
      return { code: exitCode ?? signal, out: String(stdout) }
    }
    child = sandbox.start(args, { env: target.env })
  }
}
