import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { findBlocks, pages } from '../../helpers/expect/documents.js'
import { openPostgresStore, shareDatabase } from '../../helpers/postgres/database.js'
import { installations } from '../../helpers/postgres/server.js'
import { createPlant, deletePlant, gather } from '../../helpers/sandbox/store.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const installation = installations.find(({ bin }) => existsSync(join(bin, 'pg_restore')))
const getDatabase = shareDatabase(installation)

/** The command of the page that has a text. A line of cron is what cron gives to the shell. */
function findCommand(text: string): string {
  const blocks = findBlocks(pages.get('docs/postgresql.md') ?? '')
  const block = blocks.find((block) => block.text.includes(text))?.text ?? ''
  const [, cronLine] = /^30 3 \* \* \* plants (.*)$/m.exec(block) ?? []
  return cronLine?.replaceAll('\\%', '%') ?? block
}

test.runIf(installation)(
  'the backups of docs/postgresql.md bring back what was deleted since, and only their owner can read them (needs pg_dump)',
  async () => {
    const database = await getDatabase()
    const folder = createTemporaryFolder()
    const run = async (command: string) => {
      const text = command
        .replaceAll('postgres://plants@db.example.com/plants', `'${database.url}'`)
        .replaceAll('/var/backups/plants', folder)
      const env = { ...database.env, PATH: `${installation?.bin}:${process.env['PATH']}` }
      await execa('sh', ['-euc', text], { cwd: folder, env, extendEnv: false })
    }
    const store = await openPostgresStore(database)
    await createPlant(store, { id: 1n, name: 'Fern' })
    await run(findCommand('--file=plants.dump'))
    await run(findCommand('--file=/var/backups'))
    const days = [1, 2, 3, 4, 5, 6, 7].map((day) => `plants-${day}.dump`)
    const nightly = days.find((name) => existsSync(join(folder, name))) ?? ''
    for (const name of ['plants.dump', nightly]) {
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
      await deletePlant(store, 1n)
      await run(findCommand('pg_restore').replaceAll('plants.dump', name))
      expect(await gather(store.read({}))).toEqual([{ id: 1n, name: 'Fern' }])
    }
  },
)
