import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

// What Debian has on the PATH is a script that finds this one, and takes its time.
const debian = '/usr/lib/postgresql/15/bin/psql'
const command = existsSync(debian) ? debian : 'psql'

const columns = 'id, name, tag'
const table = `plant_store.plants (${columns})`
const query = `select ${columns} from plant_store.plants order by id`

const psql =
  (text) =>
  ({ url }) => [command, '--no-psqlrc', '--quiet', '--set', 'ON_ERROR_STOP=1', '--command', text, url]
const script = (direction) => (turn) => [
  process.execPath,
  join(import.meta.dirname, 'copy.mjs'),
  direction,
  turn.url,
  `${turn.rows}.tsv`,
]

/** COPY as people use it: by psql, which the tests' PostgreSQL has not, or by a script where there is none. */
export const copier =
  spawnSync(command, ['--version']).error === undefined
    ? {
        from: { title: 'psql, \\copy from', argv: (turn) => psql(`\\copy ${table} from '${turn.rows}.tsv'`)(turn) },
        to: { title: 'psql, \\copy to', argv: psql(`\\copy (${query}) to '/dev/null'`) },
      }
    : {
        from: { title: 'COPY from, by a script (there is no psql)', argv: script('from') },
        to: { title: 'COPY to, by a script (there is no psql)', argv: script('to') },
      }
