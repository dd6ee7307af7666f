import { existsSync, readFileSync, renameSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkpointId } from '../../../src/transfer/import/checkpoint.js'
import { countOf, countsOf, plantLines, rejectedIn, writeLines } from '../../helpers/import.js'
import { canTrace } from '../../helpers/linux.js'
import { startUnder } from '../../helpers/process.js'
import { rounds } from '../../helpers/rounds.js'
import { World } from '../../helpers/world.js'

/** Starts an import that gets a signal from strace at a system call, and prints into the file `out`. */
function startTraced(user: World, args: string, calls: string[]) {
  const tracing = ['-c', 'exec strace -D -f -o log "$@" >out', 'sh', ...calls]
  return startUnder('sh', tracing, args.split(' '), user.home, { cwd: user.home, env: user.env })
}

describe.runIf(canTrace)(
  'an import that gets a signal right after its summary (needs strace)',
  () => {
    const numbered = ['name', ...Array.from({ length: 20_000 }, (_, index) => `Fern ${index}`)]
    const stored = numbered.length - 1

    /** SIGKILL comes when the store is closed after that: a system call that it ends does nothing. */
    const moments: [
      signal: string,
      call: string,
      pathOf: (user: World) => string,
      killer?: string,
    ][] = [
      ['KILL', 'unlink', ({ store }) => `${store}-wal`, 'SIGKILL'],
      ['TERM', 'write', ({ home }) => join(home, 'out')],
      ['INT', 'write', ({ home }) => join(home, 'out')],
    ]

    async function signalled(
      user: World,
      args: string,
      [signal, call, pathOf]: (typeof moments)[number],
    ) {
      const inject = [
        '-P',
        pathOf(user),
        '-e',
        `trace=${call}`,
        '-e',
        `inject=${call}:signal=${signal}:when=1`,
      ]
      const { exitCode, signal: killer, stderr } = await startTraced(user, args, inject)
      return {
        end: exitCode ?? killer,
        err: String(stderr),
        counts: countsOf(readFileSync(join(user.home, 'out'), 'utf8')),
      }
    }

    test.each(moments)('%s at %s ends with its code, and is not repeated', async (...moment) => {
      const end = moment[3] ?? 0
      const user = new World()
      user.write('plants.csv', `${numbered.join('\n')}\n`)
      const command = 'import plants.csv --id-from next'
      const err = ''
      expect(await signalled(user, command, moment)).toMatchObject({
        end,
        err,
        counts: { created: stored },
      })
      const { code, err: again } = await user.run(command)
      expect([code, again]).toEqual([
        2,
        expect.stringMatching(/^plants: The same input was imported before, /),
      ])
      expect(countOf(user.store)).toBe(stored)
    })

    test.each(moments)(
      '%s at %s ends with its code, and its rejects are complete',
      async (...moment) => {
        const end = moment[3] ?? 6
        const user = new World()
        writeLines(user.home, [...plantLines(20_000), 'bad'])
        expect(await signalled(user, 'import plants.ndjson --rejects bad', moment)).toMatchObject({
          end,
          counts: { created: 20_000, rejected: 1 },
        })
        expect([countOf(user.store), rejectedIn(user, 'bad').map(({ line }) => line)]).toEqual([
          20_000,
          [20_001],
        ])
      },
    )
  },
)

test.each([2, 4])(
  'of %d imports with one rejects file, one has it, and no record is lost',
  async (count) => {
    for (let round = 0; round < rounds(2); round += 1) {
      const user = new World()
      const names = Array.from({ length: count }, (_, index) => `list${index}`)
      for (const name of names) user.write(`${name}.ndjson`, `${name} is no plant\n`)
      const run = (name: string) =>
        user.spawn(`import ${name}.ndjson --rejects bad --store ${name}.db`)
      for (let waiting = names; waiting.length > 0; ) {
        const results = await Promise.all(waiting.map(run))
        const [winner, ...others] = waiting.filter((_, index) => results[index]?.code === 6)
        expect(others).toEqual([])
        const losers = results.filter(({ code }) => code !== 6)
        const refused =
          /^(plants: Created store .*\n)?plants: .*bad (already exists|is not as the import has left it), and would be overwritten\n/
        for (const loser of losers)
          expect(loser).toEqual({ code: 2, out: '', err: expect.stringMatching(refused) })
        const text = `${winner} is no plant`
        expect(rejectedIn(user, 'bad')).toMatchObject([{ line: 1, record: text }])
        renameSync(join(user.home, 'bad'), join(user.home, `${winner}.rejects`))
        waiting = waiting.filter((name) => name !== winner)
      }
      expect(names.every((name) => existsSync(join(user.home, `${name}.rejects`)))).toBe(true)
    }
  },
)

test.runIf(canTrace)(
  'an import that stalls keeps what it has, and the same command beside it stores nothing (needs strace)',
  async () => {
    const user = new World()
    writeLines(user.home, ['bad', ...plantLines(3000)])
    const command = 'import plants.ndjson --rejects bad'
    // The name with which the file was opened.
    const input = join(user.home, 'plants.ndjson')
    const draft = `.plants-${checkpointId(hostname(), user.store, input)}.tmp`
    const stalled = startTraced(user, command, [
      ...['-P', join(user.home, draft), '-e', 'trace=fdatasync'],
      ...['-e', 'inject=fdatasync:signal=STOP:when=1'],
    ])
    const log = join(user.home, 'log')
    await expect
      .poll(() => existsSync(log) && readFileSync(log, 'utf8'))
      .toContain('stopped by SIGSTOP')
    const { code, out } = await user.run(`${command} --timeout 1s`)
    expect([code, out]).toEqual([expect.toBeOneOf([2, 4]), ''])
    stalled.kill('SIGCONT')
    expect((await stalled).exitCode).toBe(6)
    expect(rejectedIn(user, 'bad')).toHaveLength(1)
    expect(countOf(user.store)).toBe(3000)
  },
)
