import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { expect, test } from 'vitest'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'

const dist = join(import.meta.dirname, '../../../dist', sep)

/** Writes down at the end of a process which files it has read. */
const record = `
const fs = require('node:fs')
const { readFileSync } = fs
const files = []
fs.readFileSync = (file, ...rest) => {
  files.push(String(file))
  return readFileSync(file, ...rest)
}
process.once('exit', () => fs.writeFileSync('record.json', JSON.stringify(files)))`

test.skipIf(process.env['PLANTS_BIN'] !== undefined)(
  'a create loads at most 178 KB of the bundle (needs Node as its runtime)',
  async () => {
    const user = new Sandbox()
    writeFileSync(join(user.home, 'record.cjs'), record)
    const tracer = [process.execPath, '--require', './record.cjs']
    const create = (id: number) => user.spawn(`create --id ${id} --name Fern`, {}, ...tracer)
    expect(await create(1)).toMatchObject({ code: 0 })
    expect(await create(2)).toEqual(toJsonResult({ name: 'Fern' }))
    const files: string[] = JSON.parse(readFileSync(join(user.home, 'record.json'), 'utf8'))
    const loaded = files.filter((file) => file.startsWith(dist))
    const bytes = loaded.reduce((sum, file) => sum + statSync(file).size, 0)
    expect(bytes).toBeGreaterThan(100_000)
    expect(bytes).toBeLessThanOrEqual(178_000)
  },
)
