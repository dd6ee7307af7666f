import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { note, print } from '../figures.mjs'

export const plants = join(import.meta.dirname, '../../bin/plants.js')

const table = 'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT) STRICT'

/**
 * What brings rows into a file, each by its command line; `rows` is the path of an input without its extension. A bar
 * is how many times as fast `plants import` has to be, by the order of the ids. The one without a store only reads.
 */
export const programs = {
  plants: {
    title: 'plants import',
    command: process.execPath,
    stores: true,
    argv: ({ node, rows, store }) => [node, plants, 'import', `${rows}.ndjson`, '--store', store],
  },
  sqlite3: {
    title: 'sqlite3 .import',
    command: 'sqlite3',
    stores: true,
    bar: { ordered: (nodeMajor) => (nodeMajor >= 24 ? 1 : 0.75), random: () => 1.5 },
    argv: ({ rows, store }) => [
      'sqlite3',
      store,
      'PRAGMA journal_mode=WAL',
      table,
      '.mode csv',
      `.import "${rows}.csv" plants`,
    ],
  },
  'sqlite-utils': {
    title: 'sqlite-utils insert',
    command: 'sqlite-utils',
    stores: true,
    bar: { ordered: () => 5, random: () => 5 },
    argv: ({ rows, store }) => ['sqlite-utils', 'insert', store, 'plants', `${rows}.ndjson`, '--nl', '--pk', 'id'],
  },
  jq: {
    title: 'jq -c . > /dev/null',
    command: 'jq',
    argv: ({ rows }) => ['jq', '-c', '.', `${rows}.ndjson`],
  },
}

/** Those whose command there is; the others are named. */
export function installed(candidates, env) {
  const commands = [...new Set(candidates.map(({ command }) => command))]
  const missing = commands.filter((command) => {
    const { error, stdout } = spawnSync(command, ['--version'], { env, encoding: 'utf8' })
    if (!error && command !== process.execPath) note('versions', { [command]: /\d+(\.\d+)+/.exec(stdout)?.[0] })
    return error !== undefined
  })
  for (const command of missing) print(`${command} is not installed, and left out`)
  return candidates.filter(({ command }) => !missing.includes(command))
}
