import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { insertPlants, readIds } from '../../helpers/sandbox/sqlite-file.js'
import { closeAfterTest, createPlant, openFile } from '../../helpers/sandbox/store.js'
import { serve } from '../../helpers/scripted-server/service.js'

/** Creates plants in a store, one after the other, until `end`; and returns their ids. */
async function writeTo(path: string, first: number) {
  const store = closeAfterTest(await openFile(path))
  const answered: number[] = []
  let isDone = false
  const write = async () => {
    for (let id = first; !isDone; id += 1) {
      await createPlant(store, { id: BigInt(id), name: 'Fern' })
      answered.push(id)
    }
  }
  const writing = write()
  const end = () => {
    isDone = true
    return writing
  }
  onTestFinished(end) // also when the test has failed before
  return { answered, end }
}

test('a backup is one snapshot while other processes write', async () => {
  const sandbox = new Sandbox()
  await sandbox.spawn('create --id 0 --name Fern')
  const { answered, end } = await writeTo(sandbox.store, 1)
  for (let round = 0; round < 3; round += 1) {
    const least = answered.length
    expect(await sandbox.spawn('backup plants.bak')).toMatchObject({ code: 0, err: '' })
    const ids = readIds(join(sandbox.home, 'plants.bak'))
    expect(ids).toEqual(ids.map((_, index) => index))
    expect(ids.length).toBeGreaterThan(least)
    expect(ids.length).toBeLessThanOrEqual(answered.length + 2)
  }
  await end()
})

test('no plant that was acknowledged is lost while a restore replaces the store', async () => {
  const sandbox = new Sandbox()
  await sandbox.spawn('create --id 0 --name Fern')
  insertPlants(sandbox.store, 20_000)
  await sandbox.spawn('backup plants.bak')
  const { answered, end } = await writeTo(sandbox.store, 1_000_000)
  const { code, out } = await sandbox.spawn('restore plants.bak --yes')
  await end()
  const { kept, plants } = JSON.parse(out)
  expect({ code, plants }).toEqual({ code: 0, plants: 20_001 })
  const isNew = (id: number) => id >= 1_000_000
  const [before, now] = [readIds(kept), readIds(sandbox.store)]
  expect([...before, ...now].filter(isNew)).toEqual(answered)
  expect(now.filter((id) => !isNew(id))).toHaveLength(20_001)
})

test('a restore under a service leaves a token invalid that was revoked after the backup', async () => {
  const sandbox = new Sandbox()
  await sandbox.spawn('create --id 1 --name Fern')
  const createToken = async (note: string) =>
    (await sandbox.spawn(`tokens create --note ${note}`)).out.trim()
  const [kept, lost] = [await createToken('kept'), await createToken('lost')]
  await sandbox.spawn('backup plants.bak')
  const { address } = await serve(['--store', sandbox.store], { folder: sandbox.home, env: {} })
  await sandbox.spawn('tokens revoke lost')
  await sandbox.spawn('create --id 2 --name Moss')
  expect(await sandbox.spawn('restore plants.bak --yes')).toMatchObject({ code: 0 })
  const countWith = (token: string) =>
    sandbox.spawn(`count --store ${address}`, { env: { PLANTS_TOKEN: token } })
  expect(await countWith(lost)).toMatchObject({ code: 3, out: '' })
  expect(await countWith(kept)).toMatchObject({ code: 0, out: '1\n' })
})

test('a restore does not replace a copy of a backup once a service uses it', async () => {
  const sandbox = new Sandbox()
  for (const line of ['create --id 1 --name Fern', 'tokens create', 'backup plants.bak'])
    expect(await sandbox.spawn(line)).toMatchObject({ code: 0 })
  const copy = join(sandbox.home, 'copy.bak')
  copyFileSync(join(sandbox.home, 'plants.bak'), copy)
  await serve(['--store', copy], { folder: sandbox.home, env: {} })
  const err = expect.stringContaining(copy)
  expect(await sandbox.spawn('backup copy.bak')).toEqual({ code: 2, out: '', err })
})
