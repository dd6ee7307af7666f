import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join, sep } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const root = join(import.meta.dirname, '../../..')
const fern = ['create', '--id', '1', '--name', 'Fern']
const tab = ['__complete', 'bash', 'plants --store ']
const elsewhere = (store: string) => [...fern, '--store', store, '--timeout', '1ms']
const service = elsewhere('http://127.0.0.1:9')
const database = elsewhere('postgres://a@127.0.0.1:9/b')
const drivers = ['driver', 'sqlite-store']

test.each<[string, string[][], files: number, kilobytes: number, stores: string[]]>([
  ['--help', [['--help']], 6, 139, []],
  ['create --help', [['create', '--help']], 8, 147, []],
  ['a Tab', [tab], 8, 148, []],
  ['create', [fern], 10, 178, drivers],
  ['get', [fern, ['get', '1']], 10, 176, drivers],
  ['list', [fern, ['list']], 10, 171, drivers],
  ['create at a service', [service], 12, 184, ['http-store']],
  ['create in a database', [database], 12, 293, ['postgres-store']],
])('plants %s loads only the modules that it needs', async (_, runs, files, kilobytes, stores) => {
  const { chunks, bytes, modules, found } = await loadsOf(runs)
  expect(found).toEqual(stores)
  expect(chunks).toBeLessThanOrEqual(files)
  expect(bytes).toBeLessThanOrEqual(kilobytes * 1000)
  if (stores === drivers || stores.length === 0) expect(modules).toEqual(['os', 'process', 'vm'])
})

test('an import of UTF-8 loads neither prompts nor other encodings', async () => {
  const folder = createTemporaryFolder()
  writeFileSync(join(folder, 'plants.csv'), 'id,name\n1,Fern\n')
  const { files } = await loadedBy([join(root, 'bin/plants.js'), 'import', 'plants.csv'], folder)
  const names = files.map((file) => basename(file))
  expect(names.filter((name) => name.startsWith('run-import'))).toHaveLength(1)
  // `lib` is the chunk of iconv-lite.
  expect(names.filter((name) => /^(?:complete-plan|prompts|lib)-/.test(name))).toEqual([])
})

/** What the last of some runs loads, and an empty program does not. */
async function loadsOf(runs: string[][]) {
  const folder = createTemporaryFolder()
  const empty = await loadedBy(['empty.cjs'], folder)
  let last = empty
  for (const args of runs) last = await loadedBy([join(root, 'bin/plants.js'), ...args], folder)
  const files = last.files.filter((file) => file.startsWith(join(root, 'dist', sep)))
  const isDriver = (name: string) => /sqlite(?:$|[\\/].*\.node$)/.test(name)
  const modules = last.modules.filter((name) => !empty.modules.includes(name))
  const names = files.map((file) => basename(file).replace(/(-[\w-]{8})?\.js$/, ''))
  const hasDriver = [...last.files, ...modules].some(isDriver)
  return {
    chunks: files.length,
    bytes: files.reduce((sum, file) => sum + statSync(file).size, 0),
    /** of Node */
    modules: modules.filter((name) => !isDriver(name)).toSorted(),
    found: [
      ...(hasDriver ? ['driver'] : []),
      ...names.filter((name) => /(?<!common)-store$/.test(name)),
    ],
  }
}

/** Writes down at the end of a process what it has loaded. It needs no other module of Node. */
const record = `
const fs = require('node:fs')
const { readFileSync } = fs
const files = []
fs.readFileSync = (file, ...rest) => {
  files.push(String(file))
  return readFileSync(file, ...rest)
}
process.once('exit', () => {
  const modules = process.moduleLoadList
    .filter((entry) => /^NativeModule (?!internal)/.test(entry))
    .map((entry) => entry.split(' ')[1])
  const natives = process.report.getReport().sharedObjects.filter((file) => file.endsWith('.node'))
  const loaded = [...files, ...natives].filter((file) => /\\.(js|node)$/.test(file))
  fs.writeFileSync('record.json', JSON.stringify({ files: loaded, modules }))
})`

async function loadedBy(
  args: string[],
  folder: string,
): Promise<{ files: string[]; modules: string[] }> {
  writeFileSync(join(folder, 'record.cjs'), record)
  writeFileSync(join(folder, 'empty.cjs'), '')
  const env = { PATH: process.env['PATH'], HOME: folder, PLANTS_TOKEN: 's3cret' }
  const options = { extendEnv: false, reject: false, cwd: folder, env } as const
  await execa(process.execPath, ['--require', './record.cjs', ...args], options)
  return JSON.parse(readFileSync(join(folder, 'record.json'), 'utf8'))
}
