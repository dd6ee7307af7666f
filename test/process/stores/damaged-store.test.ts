import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash } from '../../helpers/bash.js'
import { pages } from '../../helpers/documents.js'
import { isHere } from '../../helpers/programs.js'
import { idsIn } from '../../helpers/sqlite-file.js'
import { answer, World } from '../../helpers/world.js'

const pageSize = 4096

test.skipIf(!isHere('sqlite3'))(
  'a damaged store is rescued by the commands of the page that the hint names (needs sqlite3)',
  async () => {
    const user = new World()
    const store = "--store=./it's mine.db"
    const stored = Array.from({ length: 10_000 }, (_, index) => plantOf(index + 1))
    const stdin = stored.map((line) => `${line}\n`).join('')
    expect(await user.spawn(['import', store], { input: stdin })).toMatchObject({ code: 0 })
    await user.spawn(['tokens', 'create', store])
    const tokens = await user.spawn(['tokens', 'list', store])
    expect(JSON.parse(tokens.out)).toMatchObject({ id: 1 })

    const path = join(user.home, "it's mine.db")
    const bytes = readFileSync(path)
    const middle = Math.floor(bytes.length / pageSize / 2) * pageSize
    writeFileSync(path, bytes.fill(0xa5, middle, middle + pageSize))
    const { code, err } = await user.spawn(['list', '--output=json', store])
    const { message, hint } = JSON.parse(err)
    expect([code, message]).toEqual([
      4,
      `The store ${path} is damaged: database disk image is malformed`,
    ])

    expect(hint).toBe('Restore a backup, or see Rescue in docs/export-and-backup.md')
    const file = 'plants-rescued.db'
    const rescue = /sqlite3 try\.db(?<words>.*)\)/.exec(
      pages.get('docs/export-and-backup.md') ?? '',
    )
    const words = rescue?.groups?.['words'] ?? ''
    expect(pages.get('docs/deployment.md')).toContain(`sqlite3 plants.db${words})`)
    expect(await bash(user, `sqlite3 "it's mine.db"${words}`)).toMatchObject({ code: 0, err: '' })

    const rescued = `--store=./${file}`
    const plants = await user.spawn(['list', rescued])
    const lines = plants.out.trimEnd().split('\n')
    const originals = new Set(stored)
    expect({ ...plants, out: lines.filter((line) => !originals.has(line)) }).toEqual({
      code: 0,
      out: [],
      err: '',
    })
    expect(new Set(lines).size).toBe(lines.length)
    expect(lines.length).toBeGreaterThanOrEqual(9900)
    expect(lines.length).toBeLessThan(10_000)
    expect(await user.spawn(['create', '--id=10001', '--name=Moss', rescued])).toMatchObject(
      answer({ name: 'Moss' }),
    )
    expect(await user.spawn(['tokens', 'list', rescued])).toEqual(tokens)
    expect(idsIn(join(user.home, file))).toHaveLength(lines.length + 1)
  },
)

/** So long that about 50 of them fill a page. */
function plantOf(id: number): string {
  return JSON.stringify({
    id,
    name: `Plant ${id} "of the 'rock garden'",\nin the shade of a wall`,
    tag: `bed ${id % 7}`,
  })
}
