import { readFileSync } from 'node:fs'
import { basename, join, sep } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { ownService, token } from '../../helpers/http-store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const root = join(import.meta.dirname, '../../..')
const helpers = join(root, 'test/helpers')
const always = ['main', 'rolldown-runtime', 'start']
const parsing = [...always, 'create'].toSorted()
const every = [...parsing, 'env-paths']
const fern = ['create', '--id', '1', '--name', 'Fern']

test.each([
  ['--help', always],
  ['create --help', parsing],
  ['__complete -- --store ', [...every, 'completion', 'help']],
])('plants %s loads its own chunk, without a store or what changes settings', async (line, chunks) => {
  expect(await loadsOf([line.split(' ')])).toMatchObject({ chunks: chunks.toSorted(), drivers: [] })
})

test.each([
  ['create', [fern]],
  ['list', [fern, ['list']]],
])('%s loads besides what reads a command line, and the store', async (_, runs) => {
  const { drivers, ...loads } = await loadsOf(runs)
  expect(loads).toEqual({ chunks: [...every, 'sqlite'].toSorted(), modules: ['os', 'process', 'vm'] })
  expect(drivers).toHaveLength(1)
})

test.each(['http', 'postgres'])('a create with a %s store loads nothing of the embedded one', async (scheme) => {
  const served = join(temporaryFolder(), 'served.db')
  const address =
    scheme === 'http' ? await ownService({ host: '127.0.0.1', port: 0 }, served) : 'postgres://ann@127.0.0.1:9/garden'
  const { chunks, drivers } = await loadsOf([[...fern, '--store', address, '--timeout', '1s']])
  expect(chunks).toEqual(expect.arrayContaining([...every, `${scheme}-store`, 'store-access']))
  expect([chunks.includes('sqlite'), drivers]).toEqual([false, []])
})

/** The chunks, drivers and modules of Node that the last of some runs loads, and an empty program does not. */
async function loadsOf(runs: string[][]) {
  const folder = temporaryFolder()
  const empty = await record([join(helpers, 'empty.cjs')], folder)
  let last = empty
  for (const args of runs) last = await record([join(root, 'bin/plants.js'), ...args], folder)
  const chunks = last.files.filter((file) => file.startsWith(join(root, 'dist', sep)))
  const isDriver = (name: string) => /sqlite(?:$|[\\/].*\.node$)/.test(name)
  const modules = last.modules.filter((name) => !empty.modules.includes(name))
  return {
    chunks: chunks.map((file) => basename(file).replace(/(-[\w-]{8})?\.js$/, '')).toSorted(),
    drivers: [...last.files, ...modules].filter(isDriver),
    modules: modules.filter((name) => !isDriver(name)).toSorted(),
  }
}

/** Runs Node, and reads what it has loaded at its end. */
async function record(args: string[], folder: string): Promise<{ files: string[]; modules: string[] }> {
  const file = join(folder, 'record.json')
  const env = { PATH: process.env['PATH'], HOME: folder, PLANTS_TOKEN: token, LOADS_FILE: file }
  const options = { extendEnv: false, reject: false, env } as const
  await execa(process.execPath, ['--require', join(helpers, 'record-loads.cjs'), ...args], options)
  return JSON.parse(readFileSync(file, 'utf8'))
}
