import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { World } from '../../../helpers/world.js'

const plant = (id: number, name = 'Fern') => `{"id":${id},"name":"${name}"}\n`
const done = `${plant(1)}${plant(2)}bad\n`
const text = done + plant(3) + plant(4)
const command = 'import plants.ndjson --max-errors 1'
const resuming = 'plants: Resuming an interrupted import: 3 plants are done\n'

/** A user whose import has stopped behind its third record. */
async function stopped(flags = ''): Promise<World> {
  const user = new World()
  user.write('plants.ndjson', text)
  expect((await user.run(command + flags)).code).toBe(6)
  expect((await user.run('count')).out).toBe('2\n')
  return user
}

async function expectResumed(user: World, exported = text.replace('bad\n', '')): Promise<void> {
  const { code, err } = await user.run(command)
  expect([code, err]).toEqual([6, expect.stringContaining(resuming)])
  expect((await user.run('export')).out).toBe(exported)
}

describe('an import that was interrupted', () => {
  test.each([
    ['is there again', text],
    ['was changed in the part that is not done', text.replace('"id":4,"name":"Fern"', '"id":4,"name":"Moss"')],
    ['was cut short in the part that is not done', done + plant(3)],
    ['has grown', text + plant(5)],
  ])('goes on when its file %s', async (_, changed) => {
    const user = await stopped()
    rmSync(join(user.home, 'plants.ndjson'))
    user.write('plants.ndjson', changed)
    await expectResumed(user, changed.replace('bad\n', ''))
  })

  test('is rejected while its file differs in the part that is done', async () => {
    const user = await stopped()
    for (const changed of [text.replace('Fern', 'Moss'), text.replace('Fern', 'Fen'), text.slice(0, 30), '']) {
      user.write('plants.ndjson', changed)
      const { code, err } = await user.run(command)
      const why = /^plants: plants\.ndjson was changed since its import was interrupted\n {2}.*--restart/
      expect({ changed, code, err }).toEqual({ changed, code: 2, err: expect.stringMatching(why) })
      expect((await user.run('count')).out).toBe('2\n')
    }
    user.write('plants.ndjson', text)
    await expectResumed(user)
  })

  test('goes on when its file is back', async () => {
    const user = await stopped()
    const path = join(user.home, 'plants.ndjson')
    renameSync(path, `${path}.away`)
    expect((await user.run(command)).code).toBe(2)
    renameSync(`${path}.away`, path)
    await expectResumed(user)
  })

  test('has nothing to do with one of another file', async () => {
    const user = await stopped()
    user.write('other', plant(5))
    expect(await user.run('import other')).toMatchObject({ code: 0, err: '' })
    await expectResumed(user, text.replace('bad\n', '') + plant(5))
  })

  test('begins again with --restart, and writes the rejects file anew', async () => {
    const user = await stopped(' --rejects rejects')
    const again = await user.run('import plants.ndjson --rejects rejects --restart --if-exists same')
    expect([again.code, again.err.includes('Resuming')]).toEqual([6, false])
    expect(user.read('rejects')).toBe('bad\n')
    expect((await user.run('export')).out).toBe(text.replace('bad\n', ''))
  })

  test('begins again when the store was deleted', async () => {
    const user = await stopped()
    for (const suffix of ['', '-wal', '-shm']) rmSync(user.store + suffix, { force: true })
    const { code, err } = await user.run('import plants.ndjson')
    expect([code, err.includes('Resuming')]).toEqual([6, false])
    expect((await user.run('export')).out).toBe(text.replace('bad\n', ''))
  })
})

test('an import whose lock cannot be made stores nothing', async () => {
  const user = new World()
  user.write('plants.ndjson', text)
  writeFileSync(join(user.home, 'file'), '')
  const result = await user.run(command, { env: { PLANTS_STATE_DIR: join(user.home, 'file') } })
  const why = /^plants: The lock of this import in .*file.imports could not be written: .*\n {2}.*PLANTS_STATE_DIR\n$/
  expect(result).toEqual({ code: 74, out: '', err: expect.stringMatching(why) })
  expect(user.has('data')).toBe(false)
})
