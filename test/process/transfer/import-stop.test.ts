import { createWriteStream, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { pipeIn } from '../../helpers/bash.js'
import {
  allCreated,
  countOf,
  countsOf,
  digestOf,
  grouped,
  journalsOf,
  plantLines,
  shuffled,
  writeLines,
} from '../../helpers/import.js'
import { isLinux } from '../../helpers/linux.js'
import { type ProcessResult, resultOf } from '../../helpers/process.js'
import { idsIn } from '../../helpers/sqlite-file.js'
import { World } from '../../helpers/world.js'

/** The lines that most tests import: more than are read at once. */
const inputLines = plantLines(80_000).map((line, index) =>
  index < 40_000 ? line : line.replace('"name":"', `"name":"${'Very '.repeat(20)}`),
)

const command = 'import plants.ndjson'
const quickly = { interval: 10, timeout: 30_000 }

describe('an import that a signal stops', () => {
  test.each([
    [['SIGINT'], 130, 'Interrupted'],
    [['SIGTERM'], 143, 'Terminated'],
    [['SIGINT', 'SIGINT'], 130, 'Interrupted'],
  ] as const)('prints on %s how far it came, and goes on there', async (sent, code, word) => {
    const { world, stop } = await caughtImport(shuffled(inputLines))
    const result = await stop(...sent)
    const done = countOf(world.store)
    const err = `plants: ${word} after ${grouped(done)} plants\n  To resume, run the same command again\n`
    expect([result, journalsOf(world)]).toEqual([{ code, out: '', err }, []])
    expect(done).toBeLessThan(inputLines.length)
    const again = await world.run(command)
    expect(again.err).toBe(`plants: Resuming an interrupted import: ${grouped(done)} plants are done\n`)
    await judgeDone(world, again)
  })

  const nothing = 'Interrupted, nothing was changed'
  const one = 'Interrupted after 1 plant'
  const kept = 'The plants created so far are kept. To continue, run it again with --if-exists same'

  test.runIf(isLinux).each([
    ['SIGINT', 130, 'before the end of the first record', '{"id":1,', nothing],
    ['SIGINT', 130, 'in an array', '[{"id":1,"name":"Fern"},\n{"id":2,', nothing],
    ['SIGINT', 130, 'in a row', 'id,name\n1,Fern\n2,', one],
    ['SIGTERM', 143, 'between records', '{"id":1,"name":"Fern"}\n', one.replace('Interrupted', 'Terminated')],
  ] as const)('ends on %s with %i where its stdin waits %s', async (signal, code, _, input, message) => {
    const run = new World().start('import -', { stdin: 'pipe', timeout: 50_000, killSignal: 'SIGKILL' })
    run.stdin?.write(input)
    await isIdle(run.pid)
    run.kill(signal)
    const { exitCode, stderr } = await run
    const hint = message === nothing ? '' : `  ${kept}\n`
    expect({ exitCode, stderr }).toEqual({ exitCode: code, stderr: `plants: ${message}\n${hint}` })
  })

  test.runIf(isLinux)('ends although nobody writes to its pipe', async () => {
    const world = new World()
    const run = world.start(['import', pipeIn(world.home)], { timeout: 50_000, killSignal: 'SIGKILL' })
    await isIdle(run.pid)
    run.kill('SIGINT')
    const { exitCode, signal } = await run
    expect(exitCode ?? signal).toBeOneOf([130, 'SIGINT'])
  })

  test('of all plants or none rolls back', async () => {
    const lines = plantLines(200_000)
    for (;;) {
      const world = new World()
      await world.spawn('create --id 1 --name Fern')
      writeLines(world.home, lines)
      const run = world.start(`${command} --atomic`)
      const size = () => statSync(`${world.store}-wal`, { throwIfNoEntry: false })?.size ?? 0
      await expect.poll(size, { interval: 1 }).toBeGreaterThan(100_000) // the transaction is open
      run.kill('SIGINT')
      const { exitCode, stdout, stderr } = await run
      if (exitCode === 0) continue // it was too fast for this machine
      expect([exitCode, stdout, stderr]).toEqual([130, '', `plants: ${nothing}\n`])
      expect(idsIn(world.store)).toEqual([1])
      expect((await world.run(`${command} --atomic`)).code).toBe(0)
      expect(countOf(world.store)).toBe(lines.length + 1)
      return
    }
  })
})

describe('on a terminal', () => {
  test('nothing is drawn into what was rejected', async () => {
    const world = new World()
    const withBad = inputLines.flatMap((line, index) => (index % 8000 === 0 ? [line, 'bad'] : [line]))
    const path = writeLines(world.home, withBad)
    const { code, screen } = await world.terminal(['import', path, '--no-color']).ended
    const lines = shown(screen)
      .join('\n')
      .replaceAll(/\n(?!plants:|Read| )/g, '')
    expect([code, lines.match(/^plants: .*:\d+: Not JSON: .*\bbad\b.*$/gm)?.length]).toEqual([6, 10])
    expect(lines).not.toMatch(/\d %|done/)
  })

  test('nothing is drawn with --output json', async () => {
    const world = new World()
    writeLines(world.home, inputLines)
    const { out, ...end } = await world.run(`${command} --output json`, { terminals: ['stdout', 'stderr'] })
    expect({ ...end, counts: countsOf(out) }).toEqual({ code: 0, err: '', counts: allCreated(inputLines.length) })
  })

  test('Ctrl-C removes the progress', async () => {
    const world = new World()
    const path = writeLines(world.home, inputLines)
    const session = world.terminal(['import', path, '--no-color'])
    await session.answer([' done', '\x03'])
    const { code, screen } = await session.ended
    const done = grouped(countOf(world.store))
    expect([code, ...shown(screen).map((line) => line.replace('^C', ''))]).toEqual([
      ...[130, `plants: Interrupted after ${done} plants`, '  To resume, run the same command again', ''],
    ])
    const again = await world.run(['import', path])
    expect(again.err).toContain(`Resuming an interrupted import: ${done} plants are done`)
    await judgeDone(world, again)
  })
})

test('a pipe is imported as it comes', async () => {
  const world = new World()
  const run = world.start('import', { stdin: 'pipe' })
  for (let id = 1; id <= 5; id += 1) {
    run.stdin?.write(`{"id":${id},"name":"Fern"}\n{"id":${id + 100},"na`)
    await expect.poll(() => countOf(world.store), quickly).toBe(id * 2 - 1)
    run.stdin?.write('me":"Moss"}\n')
    await expect.poll(() => countOf(world.store), quickly).toBe(id * 2)
  }
  run.stdin?.end('{"id":7,"name":"No line break"}')
  const { exitCode, stdout } = await run
  expect({ exitCode, counts: countsOf(String(stdout)) }).toEqual({ exitCode: 0, counts: allCreated(11) })
})

test.runIf(isLinux)('an import of a named pipe is resumed as one of a file', async () => {
  const world = new World()
  const pipe = join(world.home, 'plants.ndjson')
  renameSync(pipeIn(world.home), pipe)
  const run = world.start(command)
  const writer = createWriteStream(pipe)
  writer.write(`${inputLines.slice(0, 40_000).join('\n')}\n`)
  await expect.poll(() => countOf(world.store), quickly).toBe(40_000)
  run.kill('SIGKILL')
  await run
  writer.on('error', () => undefined).destroy()
  rmSync(pipe)
  writeLines(world.home, inputLines)
  await judgeDone(world, await world.run(command))
})

/** An import of a file, held in the middle: `stop` sends it signals, and gives how it ends. */
async function caughtImport(lines: readonly string[]) {
  for (;;) {
    const world = new World()
    writeLines(world.home, lines)
    const run = world.start('import plants.ndjson')
    await expect.poll(() => countOf(world.store), { interval: 1, timeout: 30_000 }).toBeGreaterThan(0)
    run.kill('SIGSTOP')
    const stop = (...signals: NodeJS.Signals[]): Promise<ProcessResult> => {
      for (const signal of [...signals, 'SIGCONT'] as const) run.kill(signal)
      return resultOf(run)
    }
    if (countOf(world.store) < inputLines.length / 2) return { world, stop }
    await stop('SIGKILL') // it was too fast for this machine
  }
}

async function judgeDone(world: World, { code, out }: Partial<ProcessResult>): Promise<void> {
  expect({ code, counts: out && countsOf(out), journals: journalsOf(world) }).toEqual({
    ...{ code: 0, counts: allCreated(inputLines.length), journals: [] },
  })
  expect(digestOf((await world.run('export')).out)).toBe(digestOf(`${inputLines.join('\n')}\n`))
}

/** The lines that stay on a screen, where each is drawn over from its start. */
function shown(screen: string): string[] {
  return screen.split('\r\n').map((line) => stripVTControlCharacters(line.split('\r').at(-1) ?? ''))
}

/**
 * Resolves when no thread of a process has run, or wanted to, for a while: one that waits for a processor has something
 * to do.
 */
async function isIdle(pid: number | undefined): Promise<void> {
  let [before, same] = ['', 0]
  const look = () => {
    const stats = readdirSync(`/proc/${pid}/task`).map((task) => readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8'))
    const tasks = stats.map((stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' ')) // state first
    const now = tasks.map((fields) => fields.slice(11, 13).join()).join(' ')
    same = now === before && tasks.every(([state]) => state === 'S') ? same + 1 : 0
    before = now
    return same
  }
  await expect.poll(look, { interval: 50, timeout: 30_000 }).toBeGreaterThan(10)
}
