import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'

const soak = (...args: string[]) =>
  execa(process.execPath, [join(import.meta.dirname, 'soak.mjs'), ...args], { reject: false, env: { NO_COLOR: '1' } })

test('a soak runs the suite, or the part of it that has a name', async () => {
  const { exitCode, stdout } = await soak('2', 'plant.test')
  expect({ exitCode, files: /Test Files +(.*)/.exec(stdout)?.[1] }).toEqual({ exitCode: 0, files: '1 passed (1)' })
})

test('a soak wants a number', async () => {
  const { exitCode, stderr } = await soak('kill')
  const message = 'npm run soak -- ROUNDS [NAME]: ROUNDS must be a whole number from 1 up, but was kill'
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: message })
})

test('the start is measured beside bare node, and what settings and tokens add to it', async () => {
  const { exitCode, stdout } = await execa(process.execPath, [join(import.meta.dirname, 'bench/start.mjs'), '1'], { reject: false })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/^plants create, flags +\d+\.\d ms +\d+\.\d\d/m)
  for (const what of ['settings file', 'remote store', 'saved token, through a name']) {
    expect(stdout).toMatch(new RegExp(`^${what}: [+-]\\d+\\.\\d ms \\(`, 'm'))
  }
})

test('the import is measured in parts that there are', async () => {
  const script = join(import.meta.dirname, 'bench/import.mjs')
  const { exitCode, stdout, stderr } = await execa(process.execPath, [script, '--only', 'ordered,disordered'], { reject: false })
  const message = '--rows and --rounds must be whole numbers from 1 up, --only some of ordered,random,export,remote,memory'
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: message })
})

test('the conformance test says what it needs', async () => {
  const script = join(import.meta.dirname, 'conformance.mjs')
  const { exitCode, stdout, stderr } = await execa(process.execPath, [script], { reject: false, env: { PATH: '' } })
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: 'npm run conformance needs Java 17 or newer' })
})
