import { readdirSync, readlinkSync } from 'node:fs'
import { expect, test } from 'vitest'
import { acquireLock } from '../../../src/platform/file-lock.js'
import { waitForResult } from '../../helpers/sandbox/process.js'
import { scaleRounds } from '../../helpers/sandbox/rounds.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { buildSqliteOptions } from '../../helpers/sandbox/store.js'

const set = 'config set timeout 8s'
const before = { version: 1, timeout: '7s' }
const both = ['settings.json', 'settings.json.lock']

test('processes that write settings at the same time lose no change, and readers see whole files', async () => {
  const user = new Sandbox({})
  const names = Array.from({ length: Math.min(scaleRounds(8), 100) }, (_, index) => `s${index}`)
  const env = { PLANTS_TIMEOUT: '5m' }
  const add = (name: string) => user.spawn(`stores add ${name} /${name}.db`, { env })
  let isOver = false
  const adding = Promise.all(names.map(add)).finally(() => {
    isOver = true
  })
  while (!isOver) {
    expect((await user.run('stores list')).code).toBe(0)
    await new Promise(setImmediate)
  }
  expect((await adding).filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
  const stores = Object.fromEntries(names.map((name) => [name, { address: `/${name}.db` }]))
  expect(user.saved).toEqual({ version: 1, stores })
  expect(readdirSync(user.config)).toEqual(both)
})

test('a change that waits for the lock ends at once on a signal', async () => {
  const user = new Sandbox(before)
  const release = await acquireLock(`${user.file}.lock`, 0, buildSqliteOptions().runtime)
  const waiting = user.start(set)
  await expect.poll(() => isWaiting(waiting.pid), { interval: 5 }).toBe(true)
  waiting.kill('SIGINT')
  expect(await waitForResult(waiting)).toMatchObject({ code: 130, out: '' })
  release()
  expect(user.saved).toEqual(before)
})

/** Whether a process has opened the lock that it waits for. */
function isWaiting(pid: number | undefined): boolean {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).some((fd) => linkOf(`${folder}/${fd}`).endsWith('.lock'))
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
