import { createHash } from 'node:crypto'
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const root = join(import.meta.dirname, '../../..')

test('a build fails if its Bun has not the integrity of package-lock.json', async () => {
  const folder = createTemporaryFolder()
  for (const name of ['bin', 'docs', 'src', 'LICENSE', 'package.json', 'rolldown.config.mjs'])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const other = createHash('sha512').update('another').digest('base64')
  lock.packages['node_modules/@oven/bun-linux-aarch64-musl'].integrity = `sha512-${other}`
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
  const args = ['bin/build-binary.mjs', 'linux-arm64-musl']
  const options = { cwd: folder, reject: false } as const
  const result = await execa(process.execPath, args, options)
  expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('EINTEGRITY') })
  expect(existsSync(join(folder, 'release/plants-linux-arm64-musl'))).toBe(false)
})
