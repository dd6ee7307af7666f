import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { type Loads, loadsReader, recordTo } from '../../helpers/loads.mjs'
import { PlantService } from '../../helpers/plant-service.js'
import { ownService, token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const plants = join(import.meta.dirname, '../../../bin/plants.js')
const always = ['main', 'rolldown-runtime', 'start']
const parsing = [...always, 'create'].toSorted()
const every = [...parsing, 'env-paths']
const fern = ['create', '--id', '1', '--name', 'Fern']
let read: (record: string) => Loads

beforeAll(async () => {
  read = await loadsReader()
})

const argued = ['commander', 'env-paths']

test.each([
  ['--version', always, []],
  ['--help', always, []],
  ['create --help', parsing, ['commander']],
  ['config list', [...every, 'config'], argued],
  ['__complete -- --store ', [...every, 'completion', 'help'], argued],
])('plants %s loads its own chunk, without a store or what changes settings', async (line, chunks, packages) => {
  expect(await loadsOf([line.split(' ')])).toMatchObject({ chunks: chunks.toSorted(), packages, drivers: [] })
})

test('the saved stores are listed without what changes them', async () => {
  const { chunks, modules } = await loadsOf([['stores', 'list']])
  expect(chunks).not.toContain('sqlite')
  expect(modules).not.toContain('crypto')
})

test.each([
  ['create', [fern]],
  ['create that is rejected', [fern, fern]],
  ['get', [fern, ['get', '1']]],
  ['list', [fern, ['list']]],
])('%s loads besides what reads a command line, and the store', async (_, runs) => {
  const { drivers, ...loads } = await loadsOf(runs)
  const chunks = [...every, 'sqlite'].toSorted()
  expect(loads).toEqual({ chunks, packages: argued, modules: ['os', 'process', 'vm'] })
  expect(drivers).toHaveLength(1)
})

test('a create with a service loads nothing of the embedded store', async () => {
  const folder = temporaryFolder()
  const address = await ownService({ host: '127.0.0.1', port: 0 }, join(folder, 'served.db'))
  const { modules, ...loads } = await loadsOf([[...fern, '--store', address]], { PLANTS_TOKEN: token })
  const { chunks, ...others } = loads
  expect(others).toEqual({ packages: argued, drivers: [] })
  expect(chunks).toEqual(expect.arrayContaining([...every, 'remote-store', 'store-access']))
  expect(chunks).not.toContain('sqlite')
})

test('an import into a service, and what changes settings, load no driver of SQLite', async () => {
  const { url } = await PlantService.listen()
  const input = join(temporaryFolder(), 'plants.csv')
  writeFileSync(input, 'id,name\n1,Fern\n')
  const runs = [
    ['config', 'set', 'timeout', '3s'],
    ['import', input, '--store', url],
  ]
  for (const args of runs) expect(await loadsOf([args], { PLANTS_TOKEN: token })).toMatchObject({ drivers: [] })
})

test('a create with a database loads nothing of the others', async () => {
  const address = 'postgres://ann@127.0.0.1:9/garden'
  const { chunks, drivers } = await loadsOf([[...fern, '--store', address, '--timeout', '10ms']])
  expect(chunks).toEqual(expect.arrayContaining([...every, 'postgres-store', 'store-access']))
  expect(chunks).not.toContain('sqlite')
  expect(drivers).toEqual([])
})

test('a service loads its kind of store, and no other', async () => {
  const folder = temporaryFolder()
  const service = launch([plants, 'serve', '--port', '0'], folder, { PLANTS_SERVE_TOKEN: token })
  await Promise.race([once(service.stdout, 'data'), service])
  service.kill('SIGTERM')
  await service
  const { chunks } = read(join(folder, 'record.json'))
  expect(chunks).toEqual(expect.arrayContaining(['service', 'sqlite']))
  expect(chunks.filter((name) => name === 'postgres-store' || name === 'remote-store')).toEqual([])
})

/** What the last of some runs loads that an empty program does not. A driver is a package, or a module of Node. */
async function loadsOf(runs: string[][], env: Record<string, string> = {}) {
  const folder = temporaryFolder()
  const empty = await record([join(import.meta.dirname, '../../helpers/empty.cjs')], folder, env)
  const records: Loads[] = []
  for (const args of runs) records.push(await record([plants, ...args], folder, env))
  const last = records.at(-1) ?? empty
  const drivers = [...last.packages, ...last.modules].filter(isDriver)
  return {
    chunks: last.chunks,
    packages: last.packages.filter((name) => !isDriver(name)),
    drivers,
    modules: last.modules.filter((name) => !isDriver(name) && !empty.modules.includes(name)),
  }
}

function isDriver(name: string): boolean {
  return name === '@photostructure/sqlite' || name === 'sqlite'
}

async function record(args: string[], folder: string, variables: Record<string, string>): Promise<Loads> {
  await launch(args, folder, variables)
  return read(join(folder, 'record.json'))
}

/** Runs Node, and records what it has loaded at its end. */
function launch(args: string[], folder: string, variables: Record<string, string>) {
  const { args: first, env } = recordTo(join(folder, 'record.json'))
  const all = { PATH: process.env['PATH'], HOME: folder, ...env, ...variables }
  return execa(process.execPath, [...first, ...args], { extendEnv: false, reject: false, env: all })
}
