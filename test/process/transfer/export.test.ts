import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { fill } from '../../helpers/fill.js'
import { peakOf } from '../../helpers/import.js'
import { canTrace, isLinux } from '../../helpers/linux.js'
import { bash, pipeIn, under } from '../../helpers/process.js'
import { open } from '../../helpers/sqlite-file.js'
import { answer, World } from '../../helpers/world.js'

test.runIf(isLinux).each(['list', 'export --output json'])(
  '%s needs the same memory for any number',
  async (line) => {
    const peaks: number[] = []
    for (const count of [5000, 20_000]) {
      const world = await storeOf(count)
      open(world.store).exec(`UPDATE plants SET tag = '${'long tag '.repeat(300)}'`)
      const { reader, stdout } = startReading(world, line)
      await once(stdout, 'readable') // the pipe is full
      let [length, peak] = [0, 0]
      for await (const chunk of stdout) {
        length += chunk.length
        peak = peakOf(reader.pid) ?? peak
      }
      expect(length).toBeGreaterThan(count * 2700)
      peaks.push(peak)
    }
    const [few = 0, many = 0] = peaks
    expect(few).toBeGreaterThan(20) // it was measured
    expect(many - few).toBeLessThan(40)
  },
)

describe('an export to a file', () => {
  test('that a signal stops leaves the old file and nothing else', async () => {
    const { world, run } = await startExport()
    run.kill('SIGTERM')
    const stderr = 'plants: Terminated\n'
    expect(await run).toMatchObject({ exitCode: 143, stdout: '', stderr })
    expect([world.read('out.csv.gz'), temporaryFiles(world)]).toEqual(['old', []])
  })

  test('that is killed leaves the old file, and the next one replaces it', async () => {
    const { world, run } = await startExport()
    run.kill('SIGKILL')
    expect((await run).signal).toBe('SIGKILL')
    expect(world.read('out.csv.gz')).toBe('old')
    expect((await world.spawn('export --limit 1 out.csv.gz --yes')).code).toBe(0)
    expect(spawnSync('gzip', ['-dc', join(world.home, 'out.csv.gz')]).stdout.toString()).toBe(
      'id,name,tag\n1,Plant 1,\n',
    )
  })
})

test.runIf(canTrace)(
  'a file system without hard links gets its files, too (needs strace)',
  async () => {
    const world = await storeOf(1)
    const strace = ['-f', '-o', '/dev/null', '-e', 'inject=?link,linkat:error=EPERM']
    for (const [line, file] of [
      ['export out.ndjson', 'out.ndjson'],
      ['backup plants.bak', 'plants.bak'],
    ] as const) {
      expect((await under(world, 'strace', strace, line)).code).toBe(0)
      expect([world.has(file), temporaryFiles(world)]).toEqual([true, []])
    }
    expect(world.read('out.ndjson')).toBe('{"id":1,"name":"Plant 1"}\n')
    expect(await world.run('list --store ./plants.bak')).toEqual(answer({ id: 1, name: 'Plant 1' }))
  },
)

test.skipIf(process.platform === 'win32')(
  'the mode of a new export follows the umask, that of a backup does not',
  async () => {
    const world = await storeOf(1)
    const lines =
      'umask 027; "$plants" export a.csv; umask 002; "$plants" export b.csv; "$plants" backup c.bak'
    await bash(world, lines)
    const modes = ['a.csv', 'b.csv', 'c.bak'].map((name) =>
      (statSync(join(world.home, name)).mode & 0o777).toString(8),
    )
    expect(modes).toEqual(['640', '664', '600'])
  },
)

describe.skipIf(process.platform === 'win32')('an export to a pipe with a name', () => {
  async function pipeTo(...reader: string[]) {
    const world = await storeOf(30_000)
    const pipe = pipeIn(world.home)
    const [program = '', ...args] = [...reader, pipe]
    const reading = execa(program, args, { stripFinalNewline: false })
    return {
      world,
      pipe,
      result: await world.spawn(['export', pipe]),
      read: (await reading).stdout,
    }
  }

  test('gives its reader all plants', async () => {
    const { world, pipe, result, read } = await pipeTo('cat')
    expect(read === (await world.spawn('list')).out).toBe(true)
    expect(result).toMatchObject({
      code: 0,
      out: `{"file":"${pipe}","plants":30000,"bytes":${Buffer.byteLength(read)}}\n`,
    })
  })

  test('ends quietly when its reader leaves', async () => {
    const { result, read } = await pipeTo('head', '-n', '1')
    expect([result, read]).toEqual([{ code: 0, out: '', err: '' }, '{"id":1,"name":"Plant 1"}\n'])
  })
})

function startReading(world: World, line: string) {
  const reader = world.start(line, { buffer: false })
  if (!reader.stdout) throw new Error('There is no stdout')
  return { reader, stdout: reader.stdout }
}

async function storeOf(count: number): Promise<World> {
  const world = new World()
  await world.spawn(['create', '--id', '1', '--name', 'Plant 1'])
  fill(world.store, count)
  return world
}

/** An export that is in the middle of its work, which takes it a second or more. */
async function startExport() {
  const world = await storeOf(500_000)
  world.write('out.csv.gz', 'old')
  const run = world.start(['export', join(world.home, 'out.csv.gz'), '--yes'])
  await expect.poll(() => temporaryFiles(world), { interval: 1 }).toHaveLength(1)
  return { world, run }
}

function temporaryFiles({ home }: World): string[] {
  return readdirSync(home).filter((name) => name.endsWith('.tmp'))
}
