import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { bin } from '../../helpers/process.js'
import { addressOf } from '../../helpers/service-process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

/** A process that lists the files of the program it has loaded on stderr, when it ends. */
function spied(args: string[]) {
  const folder = temporaryFolder()
  const spy = join(folder, 'spy.cjs')
  writeFileSync(spy, "process.on('exit', () => process.stderr.write(Object.keys(require.cache).join('\\n')))")
  const env = { PLANTS_CONFIG_DIR: folder, PLANTS_DATA_DIR: folder, PLANTS_SERVE_TOKEN: 'a'.repeat(32) }
  return execa(process.execPath, ['--require', spy, bin, ...args], { extendEnv: false, env })
}

/** The names of the loaded files, without their hashes. */
function loadedBy({ stderr }: { stderr: string }): (string | undefined)[] {
  return [...stderr.matchAll(/\/dist\/([a-z-]+?)(-[\w-]{8})?\.js$/gm)].map((match) => match[1]).toSorted()
}

test.skipIf(process.env['PLANTS_BIN'])('a run loads only what it needs (needs Node as its runtime)', async () => {
  expect(loadedBy(await spied(['__complete', '--', '--store', '']))).toEqual(['common', 'main', 'rolldown-runtime'])
  const created = loadedBy(await spied(['create', '--id', '1', '--name', 'Fern']))
  expect(created).toEqual(['commander', 'common', 'create', 'main', 'rolldown-runtime', 'sqlite'])
  expect(loadedBy(await spied(['stores', 'list']))).not.toContain('sqlite')
})

test.skipIf(process.env['PLANTS_BIN'])('a service loads only its kind of store (needs Node as its runtime)', async () => {
  const service = spied(['serve', '--port', '0'])
  await addressOf(service)
  service.kill('SIGTERM')
  const loaded = loadedBy(await service)
  expect(loaded).toContain('service')
  expect(loaded).toContain('sqlite')
  expect(loaded.filter((name) => name === 'postgres' || name === 'http')).toEqual([])
})
