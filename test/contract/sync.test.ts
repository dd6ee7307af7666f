import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Right, rights } from '../../src/stores/tokens.js'
import { createDatabase } from '../helpers/postgres/database.js'
import { installations } from '../helpers/postgres/server.js'
import { ImportSandbox } from '../helpers/sandbox/import-sandbox.js'
import { serveFile, token } from '../helpers/scripted-server/service.js'

// A list of a nursery comes again: sorted anew, with two plants more, one renamed, one moved and one
// removed.

const firstMonth = ['1,Lavender,South', '2,Rose,Pond', '3,Mint,Herbs', '4,Sage,Herbs']
const secondMonth = [
  '6,Dill,Herbs',
  '1,Lavender,South',
  '2,Rose,North',
  '4,Salvia,Herbs',
  '5,Thyme,Herbs',
]

class Nursery extends ImportSandbox {
  writeList(file: string, rows: readonly string[], header = 'id,name,tag') {
    this.write(file, `${[header, ...rows].join('\n')}\n`)
  }

  override async list(): Promise<string> {
    return (await this.run('export -o csv')).out
  }
}

async function serveNursery(callerRights: readonly Right[] = rights): Promise<Nursery> {
  const user = new Nursery()
  const caller = { name: 'test', rights: callerRights, isAccepted: () => true }
  const url = await serveFile(join(user.home, 'garden.db'), caller)
  Object.assign(user.env, { PLANTS_TOKEN: token, PLANTS_STORE: url })
  return user
}

async function openDatabase(): Promise<Nursery> {
  const user = new Nursery()
  const { url, env } = await createDatabase()
  Object.assign(user.env, env, { PLANTS_STORE: url })
  return user
}

const openers: Record<string, () => Nursery | Promise<Nursery>> = {
  file: () => new Nursery(),
  service: serveNursery,
  'database (needs PostgreSQL)': openDatabase,
}

describe.for(Object.keys(openers))('an import with --sync into a %s', (kind) => {
  test('makes the store equal to the list', async ({ skip }) => {
    skip(kind.startsWith('database') && installations.length === 0)
    const user = await openers[kind]?.()
    if (!user) throw new Error(kind)
    user.writeList('list.csv', firstMonth)
    expect(await user.import('list.csv')).toMatchObject({ code: 0, created: 4 })
    user.writeList('list.csv', secondMonth)
    const counts = { created: 2, updated: 2, skipped: 1, deleted: 1 }
    expect(await user.import('list.csv --sync --yes')).toMatchObject({ code: 0, ...counts })
    expect(await user.list()).toBe(
      `id,name,tag\n${[...secondMonth.slice(1), secondMonth[0]].join('\n')}\n`,
    )
    const again = await user.import('list.csv --sync --yes')
    expect(again).toEqual({ code: 0, skipped: 5, err: '' })
  })

  test('matches a list without ids by its names', async ({ skip }) => {
    skip(kind.startsWith('database') && installations.length === 0)
    const user = await openers[kind]?.()
    if (!user) throw new Error(kind)
    const withoutIds = (rows: readonly string[]) => rows.map((row) => row.slice(2))
    user.writeList('list.csv', withoutIds(firstMonth), 'name,tag')
    await user.import('list.csv --by-name')
    user.writeList('list.csv', withoutIds(secondMonth), 'name,tag')
    expect(await user.import('list.csv --by-name --sync --yes')).toMatchObject({
      code: 0,
      created: 3,
      updated: 1,
      skipped: 1,
      deleted: 2,
    })
    const lines = (await user.list()).trim().split('\n').slice(1)
    expect(lines.slice(0, 2)).toEqual(['1,Lavender,South', '2,Rose,North'])
    expect(lines.map((line) => line.replace(/^\d+,/, '')).sort()).toEqual(
      withoutIds(secondMonth).sort(),
    )
    const again = await user.import('list.csv --by-name --sync --yes')
    expect(again).toEqual({ code: 0, skipped: 5, err: '' })
  })
})

describe('an import with --sync ends before anything is written', () => {
  test.each([
    { right: 'read', others: ['create', 'update', 'delete'] },
    { right: 'update', others: ['create', 'read', 'delete'] },
    { right: 'delete', others: ['create', 'read', 'update'] },
  ] as const)('at a service that does not let the token $right', async ({ right, others }) => {
    const user = await serveNursery(others)
    user.writeList('list.csv', firstMonth)
    const { code, err } = await user.import('list.csv --sync --yes')
    expect(code).toBe(3)
    expect(err).toContain(right)
    expect((await user.import('list.csv --if-exists skip')).created).toBe(4)
  })
})
