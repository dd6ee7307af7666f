import { readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { getSystemCode } from '../../../src/errors.js'
import { canMount, mountSmallDisk } from '../../helpers/sandbox/linux.js'
import { waitForResult } from '../../helpers/sandbox/process.js'
import { scaleRounds, seed } from '../../helpers/sandbox/rounds.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'

const token = 's3cret-Token'
/** The file is larger than a page of the disk, so that a part of it fits where the rest does not. */
const before = {
  note: 'x'.repeat(6000),
  tokens: { 'https://plants.example.com': { token, savedAt: '2026-01-02T03:04:05.678Z' } },
}

describe.runIf(canMount)('on a disk that is full at times (a tmpfs, needs unshare)', () => {
  test('concurrent changes, some of which are killed, leave valid settings', async () => {
    const { folder, inside, enter } = await mountSmallDisk()
    const user = new Sandbox()
    const env = { PLANTS_CONFIG_DIR: folder, PLANTS_TIMEOUT: '5m' }
    const file = join(inside, 'settings.json')
    writeFileSync(file, JSON.stringify({ version: 1, ...before }), { mode: 0o600 })
    const random = createRandom()
    const names = Array.from(
      { length: Math.min(scaleRounds(16), 100) },
      (_value, index) => `s${index}`,
    )
    const running = new Map<string, ReturnType<Sandbox['start']>>()
    const finish = async (name: string, started: ReturnType<Sandbox['start']>) => {
      const { code, out } = await waitForResult(started)
      running.delete(name)
      // The end of each change is a moment for the others.
      if (random() < 0.5) fillDisk(inside, Math.floor(random() * 5))
      else rmSync(join(inside, 'filler'), { force: true })
      if (random() < 0.2) [...running.values()].at(-1)?.kill('SIGKILL')
      return { name, code, isAcknowledged: out !== '' || code === 0 }
    }
    const changes = names.map((name) => {
      const started = user.start(`stores add ${name} /${name}.db`, { env }, ...enter)
      running.set(name, started)
      return finish(name, started)
    })
    const results = await Promise.all(changes)
    rmSync(join(inside, 'filler'), { force: true })
    for (const { code } of results) expect(code).toBeOneOf([0, 74, undefined])
    // The next change finds what killed processes have left.
    const last = await user.spawn('config set output json', { env }, ...enter)
    expect(last).toMatchObject({ code: 0, err: '' })
    const { stores = {}, ...saved } = JSON.parse(readFileSync(file, 'utf8'))
    expect(saved).toEqual({ version: 1, output: 'json', ...before })
    for (const [name, store] of Object.entries(stores))
      expect([names.includes(name), store]).toEqual([true, { address: `/${name}.db` }])
    const acknowledged = results.filter(({ isAcknowledged }) => isAcknowledged)
    expect(Object.keys(stores)).toEqual(
      expect.arrayContaining(acknowledged.map(({ name }) => name)),
    )
    expect(readdirSync(inside).toSorted()).toEqual(['settings.json', 'settings.json.lock'])
  })
})

describe.runIf(canMount)('on a disk that fills up in the meantime (a tmpfs, needs unshare)', () => {
  test('settings stay as they were when a change cannot write them', async () => {
    const { folder, inside, enter } = await mountSmallDisk()
    const user = new Sandbox()
    const env = { PLANTS_CONFIG_DIR: folder }
    const file = join(inside, 'settings.json')
    const text = JSON.stringify({ version: 1, note: 'x'.repeat(8120) })
    writeFileSync(file, text, { mode: 0o600 })
    // The old settings have two pages, which conf writes first, and the new ones three.
    fillDisk(inside, 4)
    const { code, out, err } = await user.spawn('stores add a /srv/a.db', { env }, ...enter)
    const reason = 'only a part of them could be written'
    expect([code, out, err]).toEqual([74, '', expect.stringContaining(reason)])
    expect(err).toContain('\n  Free some space on ')
    expect(readFileSync(file, 'utf8')).toBe(text)
    const names = ['filler', 'settings.json', 'settings.json.lock']
    expect(readdirSync(inside).toSorted()).toEqual(names)
    rmSync(join(inside, 'filler'))
    const again = await user.spawn('stores add a /srv/a.db', { env }, ...enter)
    expect(again).toMatchObject({ code: 0, err: '' })
  })
})

/** @param freePages how many pages of 4 KiB stay free */
function fillDisk(inside: string, freePages: number): void {
  const filler = join(inside, 'filler')
  rmSync(filler, { force: true })
  const { bavail, bsize } = statfsSync(inside)
  try {
    writeFileSync(filler, Buffer.alloc(Math.max(0, bavail - freePages) * bsize))
  } catch (error) {
    // A change has taken some of the room meanwhile.
    if (getSystemCode(error) !== 'ENOSPC') throw error
  }
}

/** Numbers from 0 to 1, which are the same for the same seed. */
function createRandom(): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
