import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { canTrace, killAt } from '../../helpers/linux.js'
import { bin, plants, start } from '../../helpers/process.js'
import { nextPlace, rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const atOnce = 6

test('a plant that was answered stays when the processes around it are killed', {
  timeout: rounds(60_000),
}, async () => {
  const folder = temporaryFolder()
  const asked = new Set<string>()
  const answered = new Set<string>()
  for (let round = 0; round < rounds(6); round += 1) {
    const fresh = Array.from({ length: atOnce }, (_, index) => ({
      id: round * atOnce + index,
      name: `Fern ${round}/${index}`,
    }))
    for (const plant of fresh) asked.add(JSON.stringify(plant))
    for (const plant of await createAndKill(fresh, folder)) answered.add(JSON.stringify(plant))
    const { code, out, err } = await plants(['list'], folder)
    const stored = new Set(out.split('\n').slice(0, -1))
    const lost = [...answered].filter((plant) => !stored.has(plant))
    const strange = [...stored].filter((plant) => !asked.has(plant))
    const whole = { round, code: 0, err: '', lost: [], strange: [], integrity: 'ok' }
    expect({ round, code, err, lost, strange, integrity: look(folder).integrity }).toEqual(whole)
  }
})

describe.runIf(canTrace)('a create that is killed before a system call on its files (needs strace)', () => {
  const create = ['create', '--id', '1', '--name', 'Fern', '--idempotency-key', 'order-66']
  const systemCalls = ['openat', 'pwrite64', 'fsync', 'ftruncate', '?unlink,unlinkat']

  test.each([
    ['makes the store', []],
    ['finds the store of others', ['0', '2']],
  ])('and that %s, leaves it whole and can be repeated', async (_, ids) => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'before'))
    for (const id of ids) await plants(['create', '--id', id, '--name', 'Moss'], join(folder, 'before'))
    // the folder must outlast all
    const results = await Promise.allSettled(systemCalls.map((call) => killAtEach(call, ids, folder)))
    for (const result of results) if (result.status === 'rejected') throw result.reason
  })

  /** Kills a create before the first call of a kind, another before a later one, until one comes to its end. */
  async function killAtEach(call: string, ids: string[], base: string): Promise<void> {
    for (let when = 1; ; when = nextPlace(when)) {
      const folder = join(base, `${call}-${when}`)
      cpSync(join(base, 'before'), folder, { recursive: true })
      const { signal, stdout } = await createAndKillAt(call, when, folder)
      const isLost = stdout !== '' && (await plants(['get', '1'], folder)).code !== 0
      const repeated = await plants(create, folder)
      expect({ call, when, signal, isLost, repeated, ...look(folder) }).toEqual({
        call,
        when,
        signal: signal && 'SIGKILL',
        isLost: false,
        repeated: { code: 0, out: '{"name":"Fern"}\n', err: '' },
        ids: ['1', ...ids].toSorted().join(),
        integrity: 'ok',
      })
      if (signal === undefined) return
    }
  }

  function createAndKillAt(call: string, when: number, folder: string) {
    const data = join(folder, 'data')
    const files = ['', '/plants.db', '/plants.db-journal', '/plants.db-wal', '/plants.db-shm'].flatMap((name) => [
      '-P',
      data + name,
    ])
    return execa('strace', [...killAt(call, when), ...files, bin, ...create], {
      reject: false,
      stdin: 'ignore',
      extendEnv: false,
      env: { PATH: process.env['PATH'], PLANTS_DATA_DIR: data },
    })
  }
})

interface Plant {
  id: number
  name: string
}

/** Creates plants at once, and kills what is still at it when some have answered. Gives those that were answered. */
async function createAndKill(fresh: Plant[], folder: string): Promise<Plant[]> {
  const enough = Math.ceil(Math.random() * fresh.length)
  const answered: Plant[] = []
  const creates = fresh.map(({ id, name }) => start(['create', '--id', `${id}`, '--name', name], folder))
  for (const [index, plant] of fresh.entries()) {
    creates[index]?.stdout?.once('data', () => {
      answered.push(plant)
      if (answered.length === enough) for (const create of creates) create.kill('SIGKILL')
    })
  }
  const results = await Promise.all(creates)
  expect(results.filter(({ exitCode, signal }) => exitCode !== 0 && signal !== 'SIGKILL')).toEqual([])
  return answered
}

/** What is in a store, past the program. */
function look(folder: string): { integrity: unknown; ids: unknown } {
  const db = new DatabaseSync(join(folder, 'data/plants.db'))
  try {
    const { integrity_check: integrity } = db.prepare('PRAGMA integrity_check').get() ?? {}
    const { ids } =
      db.prepare("SELECT group_concat(id, ',') AS ids FROM (SELECT id FROM plants ORDER BY id)").get() ?? {}
    return { integrity, ids }
  } finally {
    db.close()
  }
}
