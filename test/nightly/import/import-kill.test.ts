import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createDatabase } from '../../helpers/postgres/database.js'
import {
  countPlants,
  ImportSandbox,
  parseCounts,
  writeLines,
} from '../../helpers/sandbox/import-sandbox.js'
import { canTrace } from '../../helpers/sandbox/linux.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import {
  expectEachPlantOnce,
  few,
  file,
  most,
  named,
  numbered,
  service,
  type Target,
  tableOfWorkbook,
  withRejected,
} from '../../process/import/import-kill-steps.js'

async function database(): Promise<Target> {
  const { url: store, env, query } = await createDatabase()
  const sandbox = new Sandbox()
  await sandbox.run(['stores', 'init', store], { env })
  const count = 'SELECT count(*) AS count FROM plant_store.plants'
  const stored = async () => Number((await query(count))[0]?.['count'])
  const end = async () => (await sandbox.run(['export', '--store', store], { env })).out
  return { store, env, stored, end }
}

test.each([
  ['ids in no order, into a file', file, () => withRejected(most)],
  ['ids in no order, into a database', database, () => withRejected(most)],
  ['ids in no order, into a service', service, () => withRejected(few * 2)],
  ['CSV without ids, into a service', service, numbered],
  ['a workbook, into a file', file, tableOfWorkbook],
  ['CSV by name, into a service', service, () => named('--if-exists update', few, 0)],
] as const)(
  'an import that was killed, or whose service was, is repeated, and stores each plant once: %s',
  async (_, makeTarget, makeInput) => expectEachPlantOnce(await makeTarget(), makeInput()),
)

// SIGKILL comes when the store is closed: a system call that it ends does nothing.
test.runIf(canTrace).each([
  ['data/plants.db-wal', 'unlink', 'KILL', 'SIGKILL'],
  ['out', 'write', 'TERM', 6],
  ['out', 'write', 'INT', 6],
])(
  'an import that has printed its summary is complete, whatever happens at $1 of $0: $2 (needs strace)',
  async (...moment) => {
    const [path, call, signal, end] = moment
    const user = new ImportSandbox()
    const names = Array.from({ length: 20_000 }, (_, index) => `{"name":"Fern ${index}"}`)
    writeLines(user.home, [...names, 'bad'])
    const command = 'import plants.ndjson --by-name'
    const inject = `inject=${call}:signal=${signal}:when=1`
    const calls = ['-P', join(user.home, path), '-e', `trace=${call}`, '-e', inject]
    const tracing = ['sh', '-c', 'exec strace -D -f -o log "$@" >out', 'sh', ...calls]
    const run = await user.start(`${command} --rejects bad`, {}, ...tracing)
    expect(run.exitCode ?? run.signal).toBe(end)
    expect(parseCounts(user.read('out'))).toEqual({ created: 20_000, rejected: { 400: 1 } })
    expect(user.readRejected('bad')).toMatchObject([{ line: 20_001 }])
    const again = parseCounts((await user.run(command)).out)
    expect(again).toEqual({ skipped: 20_000, rejected: { 400: 1 } })
    expect(countPlants(user.store)).toBe(20_000)
  },
)
