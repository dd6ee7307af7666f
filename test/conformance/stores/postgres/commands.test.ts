import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { freshDatabase } from '../../../helpers/postgres.js'
import { othersWait } from '../../../helpers/shared-store.js'
import { answer, printed, refusal, World } from '../../../helpers/world.js'

const fern = ['create', '--id', '1', '--name', 'Fern', '--store']

/** A fresh database, somebody who uses it, and its address as people are shown it, with what doctor says of it. */
async function gardener() {
  const { url, env, admin, sql } = await freshDatabase()
  const user = new World()
  const doctor = async (address = url, flags: string[] = []) => {
    const { code, out } = await user.run(['doctor', '--store', address, ...flags], { env })
    const found = out.split('\n').find((line) => line.includes('"check":"store postgres')) ?? '{}'
    return { code, ...JSON.parse(found) }
  }
  return { url, env, admin, sql, user, doctor }
}

test('a password is saved when the database accepts it, and used from then on', async () => {
  const { url, env, user } = await gardener()
  const { PGPASSWORD = '' } = env
  const line = ['auth', 'login', '--with-token', '--store', url]
  const { code, err } = await user.run(line, { stdin: 's3cret-but-wrong' })
  expect({ code, err, saved: user.saved }).toEqual({
    code: 3,
    err: expect.stringContaining('Nothing was saved'),
    saved: undefined,
  })
  expect(await user.run([...line, '--output', 'text'], { stdin: `${PGPASSWORD}\n` })).toEqual(
    printed(`Saved the password for ${url}, which accepts it\n`),
  )
  expect(await user.run([...fern, url])).toEqual(answer({ name: 'Fern' }))
})

test('a create without a password says how to give one', async () => {
  const { url, user } = await gardener()
  const { code, err } = await user.run([...fern, url])
  expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining(`plants auth login --store ${url}\n`) })
})

test('doctor says what it finds', async () => {
  const { url, env, admin, doctor, user } = await gardener()
  const ok = { code: 0, check: `store ${url}`, state: 'ok' }
  expect(await doctor()).toEqual({ ...ok, message: expect.stringMatching(/ \(no store yet\), PostgreSQL [\d.]+$/) })
  await user.run([...fern, url], { env })
  expect(await doctor()).toEqual({ ...ok, message: expect.stringMatching(/^postgres:\S+, PostgreSQL [\d.]+$/) })
  const elsewhere = await doctor(url.replace('127.0.0.1', '0.0.0.0')) // which leads here too
  expect(elsewhere).toMatchObject({ code: 0, state: 'warning', message: expect.stringContaining('has no TLS') })
  await admin('DROP SCHEMA public')
  expect(await doctor()).toMatchObject(ok)
  expect(await doctor(url.replace(/db\w+$/, 'nowhere'))).toMatchObject({ code: 1, state: 'failed' })
})

test('a dry run shows what a create would do', async () => {
  const { url, env, user, sql } = await gardener()
  const dry = { dryRun: true, id: 1, name: 'Fern', store: url }
  expect(await user.run([...fern, url, '--dry-run'], { env })).toEqual(
    answer({ ...dry, storeExists: false, creates: true }),
  )
  expect(await sql(`SELECT to_regclass('plant_store.plants') IS NULL AS is_untouched`)).toEqual([
    { is_untouched: true },
  ])
  await user.run([...fern, url], { env })
  expect(await user.run([...fern, url, '--dry-run'], { env })).toEqual(
    refusal('A plant with id 1 already exists', `Look at it with: plants get 1 --store ${url}`, 1),
  )
})

test('a store that an administrator has made is used by a role that may create and read', async () => {
  const { url, env, admin, user, doctor } = await gardener()
  const role = `gardener_${url.slice(-8)}`
  await admin(`CREATE ROLE ${role} LOGIN PASSWORD '${env.PGPASSWORD}'`)
  const own = url.replace('plants@', `${role}@`)
  try {
    expect(await doctor(own)).toMatchObject({
      code: 1,
      state: 'failed',
      hint: expect.stringContaining(`plants stores init ADDRESS --role ${role}`),
    })
    const init = await user.run(['stores', 'init', url, '--role', role], { env })
    expect(init).toEqual(answer({ address: url, role }))
    expect(await doctor(own)).toMatchObject({ code: 0, state: 'ok' })
    expect(await user.run([...fern, own], { env })).toEqual(answer({ name: 'Fern' }))
    expect(await user.run(['get', '1', '--store', own], { env })).toEqual(answer({ id: 1, name: 'Fern' }))
    expect((await user.run(['delete', '1', '--yes', '--store', own], { env })).code).not.toBe(0)
    expect((await user.run(['stores', 'init', url, '--role', role, '--output', 'text'], { env })).out).toBe(
      `The store in ${url} is ready, and ${role} may create and read plants there\n`,
    )
  } finally {
    await admin(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  }
})

test('an import numbers its plants from the greatest id of a database', async () => {
  const { url, env } = await freshDatabase()
  const user = new World()
  await user.run(['create', '--id', '7', '--name', 'Fern', '--store', url], { env })
  for (const flags of [['--dry-run'], ['--atomic'], []])
    await user.run(['import', '--id-from', 'next', '--store', url, ...flags], { env, stdin: '{"name":"Moss"}\n' })
  const { out } = await user.run(['list', '--fields', 'id', '--store', url], { env })
  expect(out).toBe('{"id":7}\n{"id":8}\n{"id":9}\n')
})

test('an import whose transaction is rolled back, and that is stopped meanwhile, has created nothing', async () => {
  const place = await freshDatabase()
  const { url, env } = place
  const user = new World()
  expect(await user.run(['stores', 'init', url], { env })).toMatchObject({ code: 0 })
  await place.hold('LOCK TABLE plant_store.imports IN EXCLUSIVE MODE')
  writeFileSync(join(user.home, 'plants.ndjson'), '{"id":1,"name":"Fern"}')
  const stop = new AbortController()
  const result = user.run(['import', 'plants.ndjson', '--store', url], { env, signal: stop.signal })
  await othersWait(place, 1)
  stop.abort(new PlantsError('interrupted', 'Interrupted'))
  const own = "application_name = 'plants' AND datname = current_database()"
  await place.admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${own}`)
  const { code, out, err } = await result
  expect({ code, out, end: err.split('\n').at(-2) }).toEqual({
    ...{ code: 130, out: '', end: 'plants: Interrupted, nothing was changed' },
  })
  expect(await place.sql('SELECT count(*)::int FROM plant_store.plants')).toEqual([{ count: 0 }])
})
