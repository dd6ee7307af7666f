import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { freshDatabase } from '../../../helpers/postgres.js'
import { asRole, othersWait } from '../../../helpers/shared-store.js'
import { answer, printed, refusal, World } from '../../../helpers/world.js'

const fern = ['create', '--id', '1', '--name', 'Fern', '--store']

/** A fresh database, a user of it, and what doctor says of it. */
async function gardener() {
  const place = await freshDatabase()
  const { url, env } = place
  const user = new World()
  const run = (argv: string | string[], options = {}) => user.run(argv, { env, ...options })
  const doctor = async (address = url) => {
    const { code, out } = await run(['doctor', '--store', address])
    const found = out.split('\n').find((line) => line.includes('"check":"store postgres')) ?? '{}'
    return { code, ...JSON.parse(found) }
  }
  return { place, url, env, user, run, doctor }
}

test('a password is saved when the database accepts it, and used from then on', async () => {
  const { url, env, user } = await gardener()
  const line = ['auth', 'login', '--with-token', '--store', url]
  const { code, err } = await user.run(line, { stdin: 's3cret-but-wrong' })
  expect({ code, err, saved: user.saved }).toEqual({
    code: 3,
    err: expect.stringContaining('Nothing was saved'),
    saved: undefined,
  })
  const without = await user.run([...fern, url])
  expect(without).toMatchObject({ code: 3, err: expect.stringContaining(`plants auth login --store ${url}\n`) })
  const saved = `Saved the password for ${url}, which accepts it\n`
  expect(await user.run([...line, '--output', 'text'], { stdin: `${env.PGPASSWORD}\n` })).toEqual(printed(saved))
  expect(await user.run([...fern, url])).toEqual(answer({ name: 'Fern' }))
})

test('doctor checks a database', async () => {
  const { place, url, run, doctor } = await gardener()
  const ok = { code: 0, check: `store ${url}`, state: 'ok' }
  expect(await doctor()).toEqual({ ...ok, message: expect.stringMatching(/ \(no store yet\), PostgreSQL [\d.]+$/) })
  await run([...fern, url])
  expect(await doctor()).toEqual({ ...ok, message: expect.stringMatching(/^postgres:\S+, PostgreSQL [\d.]+$/) })
  const elsewhere = await doctor(url.replace('127.0.0.1', '0.0.0.0')) // which leads here too
  expect(elsewhere).toMatchObject({ code: 0, state: 'warning', message: expect.stringContaining('has no TLS') })
  await place.admin('DROP SCHEMA public')
  expect(await doctor()).toMatchObject(ok)
  expect(await doctor(url.replace(/db\w+$/, 'nowhere'))).toMatchObject({ code: 1, state: 'failed' })
})

test('a dry run shows what a create would do', async () => {
  const { place, url, run } = await gardener()
  const dry = { dryRun: true, id: 1, name: 'Fern', store: url, storeExists: false, creates: true }
  expect(await run([...fern, url, '--dry-run'])).toEqual(answer(dry))
  expect(await place.sql(`SELECT to_regclass('plant_store.plants') IS NULL AS none`)).toEqual([{ none: true }])
  await run([...fern, url])
  const hint = `Look at it with: plants get 1 --store ${url}`
  expect(await run([...fern, url, '--dry-run'])).toEqual(refusal('A plant with id 1 already exists', hint, 1))
})

test('a store that an administrator has made is used by a role that may create and read', async () => {
  const { place, url, run, doctor } = await gardener()
  const { role, url: own } = await asRole(place, 'gardener')
  const hint = expect.stringContaining(`plants stores init ADDRESS --role ${role}`)
  expect(await doctor(own)).toMatchObject({ code: 1, state: 'failed', hint })
  expect(await run(['stores', 'init', url, '--role', role])).toEqual(answer({ address: url, role }))
  expect(await doctor(own)).toMatchObject({ code: 0, state: 'ok' })
  expect(await run([...fern, own])).toEqual(answer({ name: 'Fern' }))
  expect(await run(['get', '1', '--store', own])).toEqual(answer({ id: 1, name: 'Fern' }))
  expect((await run(['delete', '1', '--yes', '--store', own])).code).not.toBe(0)
  const ready = `The store in ${url} is ready, and ${role} may create and read plants there\n`
  expect(await run(['stores', 'init', url, '--role', role, '--output', 'text'])).toMatchObject({ out: ready })
})

test('an import numbers its plants from the greatest id of a database', async () => {
  const { url, run } = await gardener()
  await run(['create', '--id', '7', '--name', 'Fern', '--store', url])
  for (const flags of [['--dry-run'], ['--atomic'], []])
    await run(['import', '--id-from', 'next', '--store', url, ...flags], { stdin: '{"name":"Moss"}\n' })
  expect((await run(['list', '--fields', 'id', '--store', url])).out).toBe('{"id":7}\n{"id":8}\n{"id":9}\n')
})

test('an import whose transaction is rolled back, and that is stopped meanwhile, has created nothing', async () => {
  const { place, url, user, run } = await gardener()
  expect(await run(['stores', 'init', url])).toMatchObject({ code: 0 })
  await place.hold('LOCK TABLE plant_store.imports IN EXCLUSIVE MODE')
  writeFileSync(join(user.home, 'plants.ndjson'), '{"id":1,"name":"Fern"}')
  const stop = new AbortController()
  const result = run(['import', 'plants.ndjson', '--store', url], { signal: stop.signal })
  await othersWait(place, 1)
  stop.abort(new PlantsError('interrupted', 'Interrupted'))
  const own = "application_name = 'plants' AND datname = current_database()"
  await place.admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${own}`)
  const { code, out, err } = await result
  expect([code, out, err.split('\n').at(-2)]).toEqual([130, '', 'plants: Interrupted, nothing was changed'])
  expect(await place.sql('SELECT count(*)::int FROM plant_store.plants')).toEqual([{ count: 0 }])
})
