import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, sep } from 'node:path'
import { note, print, printColumns, textOf } from '../figures.mjs'
import { recordTo } from './loads.mjs'

const root = join(import.meta.dirname, '../..')

/** Prints the files of the bundle that a create loads, with their sizes. */
export function measureFiles({ folder, env, nodes: [node] }) {
  const record = join(folder, 'files.json')
  const data = join(folder, 'files')
  mkdirSync(data)
  const { args, env: variables } = recordTo(record)
  const command = [...args, join(root, 'bin/plants.js'), 'create', '--id', '1', '--name', 'Fern']
  const { status, stderr } = spawnSync(node, command, { env: { ...env, ...variables, PLANTS_DATA_DIR: data } })
  if (status !== 0) throw new Error(`plants create ended with ${status}: ${stderr}`)
  const { files } = JSON.parse(readFileSync(record, 'utf8'))
  const rows = files
    .filter((file) => file.startsWith(join(root, 'dist', sep)))
    .map((file) => ({ title: basename(file).replace(/(-[\w-]{8})?\.js$/, ''), size: statSync(file).size / 1000 }))
    .toSorted((one, other) => other.size - one.size)
  rows.push({ title: 'all', size: rows.reduce((sum, { size }) => sum + size, 0) })
  note('start files', { title: 'Files of the bundle that a create loads', rows })
  printColumns([['a create loads', 'KB'], ...rows.map(({ title, size }) => [title, textOf(size, 1)])])
  print('')
}
