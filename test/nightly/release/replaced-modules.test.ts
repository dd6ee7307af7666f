import { join } from 'node:path'
import { type OutputChunk, rolldown } from 'rolldown'
import { beforeAll, expect, test } from 'vitest'
import { nameReplacement, replacedModules } from '../../../bin/build/replaced-modules.mjs'
import config from '../../../rolldown.config.mjs'

const root = join(import.meta.dirname, '../../..')
let chunks: OutputChunk[] = []

beforeAll(async () => {
  const bundle = await rolldown({ ...config, cwd: root, logLevel: 'silent' })
  const { output } = await bundle.generate(config.output)
  await bundle.close()
  chunks = output.filter((item) => item.type === 'chunk')
})

const findChunks = (pattern: RegExp) =>
  chunks.filter(({ moduleIds }) => moduleIds.some((id) => pattern.test(id.replaceAll('\\', '/'))))

test.each(replacedModules)(
  '$importer still imports the module $id, which the bundle replaces',
  (entry) => {
    expect(chunks.flatMap(({ moduleIds }) => moduleIds)).toContain(nameReplacement(entry))
  },
)

test('commander loads no child_process in the bundle', () => {
  const found = findChunks(/\/node_modules\/commander\//)
  expect(found.length).toBeGreaterThan(0)
  const loads = found.filter(({ code }) => /require\(.node:child_process.\)/.test(code))
  expect(loads.map(({ name }) => name)).toEqual([])
})

test.each(['pgpass', 'pg-connection-string', 'ajv', 'ajv-formats'])(
  'no module of the package %s is bundled',
  (name) => {
    expect(findChunks(RegExp(`/node_modules/${name}/`))).toEqual([])
  },
)

test('the bundle has the env-paths of the program, and not that of conf', () => {
  const ids = chunks.flatMap(({ moduleIds }) => moduleIds.map((id) => id.replaceAll('\\', '/')))
  const folders = ids.flatMap((id) => /.*\/node_modules\/env-paths\//.exec(id)?.[0] ?? [])
  expect(folders).toEqual([join(root, 'node_modules/env-paths/').replaceAll('\\', '/')])
})
