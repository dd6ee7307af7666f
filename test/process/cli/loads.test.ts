import { readFileSync, statSync } from 'node:fs'
import { basename, join, sep } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { ownService, token } from '../../helpers/http-store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const root = join(import.meta.dirname, '../../..')
const helpers = join(root, 'test/helpers')
const fern = ['create', '--id', '1', '--name', 'Fern']

test.each([
  [['--help'], 8, 125],
  [['create', '--help'], 10, 142],
  [['__complete', 'bash', 'plants --store '], 10, 142],
])('plants %j loads at most %i files with %i KB, and no store', async (line, files, kilobytes) => {
  const { chunks, bytes, drivers } = await loadsOf([line])
  expect(chunks).not.toContain('sqlite-store')
  expect(drivers).toEqual([])
  expect([chunks.length <= files, bytes <= kilobytes * 1000], `${chunks.length} ${bytes}`).toEqual([
    true,
    true,
  ])
})

test.each([
  ['create', 18, 175, [fern]],
  ['list', 18, 175, [fern, ['list']]],
])(
  '%s loads at most %i files with %i KB, the driver, and no module of Node that is slow',
  async (_, files, kilobytes, runs) => {
    const { chunks, bytes, drivers, modules } = await loadsOf(runs)
    expect(modules).toEqual(['os', 'process', 'vm'])
    expect(drivers).toHaveLength(1)
    expect(
      [chunks.length <= files, bytes <= kilobytes * 1000],
      `${chunks.length} ${bytes}`,
    ).toEqual([true, true])
  },
)

test.each(['http', 'postgres'])(
  'a create with a %s store loads nothing of the embedded one',
  async (scheme) => {
    const served = join(temporaryFolder(), 'served.db')
    const address =
      scheme === 'http'
        ? await ownService({ host: '127.0.0.1', port: 0 }, served)
        : 'postgres://ann@127.0.0.1:9/garden'
    const { chunks, drivers } = await loadsOf([[...fern, '--store', address, '--timeout', '1s']])
    expect(chunks).toContain(`${scheme}-store`)
    expect([chunks.includes('sqlite-store'), drivers]).toEqual([false, []])
  },
)

/** The files of dist, drivers and modules of Node that the last of some runs loads, and an empty program does not. */
async function loadsOf(runs: string[][]) {
  const folder = temporaryFolder()
  const empty = await record([join(helpers, 'empty.cjs')], folder)
  let last = empty
  for (const args of runs) last = await record([join(root, 'bin/plants.js'), ...args], folder)
  const files = last.files.filter((file) => file.startsWith(join(root, 'dist', sep)))
  const isDriver = (name: string) => /sqlite(?:$|[\\/].*\.node$)/.test(name)
  const modules = last.modules.filter((name) => !empty.modules.includes(name))
  return {
    chunks: files.map((file) => basename(file).replace(/(-[\w-]{8})?\.js$/, '')),
    bytes: files.reduce((sum, file) => sum + statSync(file).size, 0),
    drivers: [...last.files, ...modules].filter(isDriver),
    modules: modules.filter((name) => !isDriver(name)).toSorted(),
  }
}

/** Runs Node, and reads what it has loaded at its end. */
async function record(
  args: string[],
  folder: string,
): Promise<{ files: string[]; modules: string[] }> {
  const file = join(folder, 'record.json')
  const env = { PATH: process.env['PATH'], HOME: folder, PLANTS_TOKEN: token, LOADS_FILE: file }
  const options = { extendEnv: false, reject: false, env } as const
  await execa(process.execPath, ['--require', join(helpers, 'record-loads.cjs'), ...args], options)
  return JSON.parse(readFileSync(file, 'utf8'))
}
