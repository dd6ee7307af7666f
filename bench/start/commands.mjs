import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { peers } from '../peers.mjs'
import { start } from '../server.mjs'
import { recordTo } from './loads.mjs'

const plants = join(import.meta.dirname, '../../bin/plants.js')
const token = randomBytes(16).toString('hex')
const flags = (id) => ['create', '--id', String(id), '--name', 'Fern']

/** What people ask for, one after the other; each is by its title in the list. */
const commands = {
  '--version': { args: ['--version'] },
  '--help': { args: ['--help'] },
  create: { args: flags(1) },
  'create, id exists (409)': { args: flags(1), status: 1 },
  'create, of what is no plant': { args: ['create', '--id', 'one'], status: 2 },
  'create, in colours': { args: [...flags(2), '--output', 'text'], env: { FORCE_COLOR: '1' } },
  get: { args: ['get', '1'] },
  list: { args: ['list'] },
  'list, as a table': { args: ['list', '--output', 'text'] },
  delete: { args: ['delete', '2', '--yes'] },
  'import of NDJSON': { args: ['import', 'plants.ndjson'] },
  'import of CSV': { args: ['import', 'plants.csv'] },
  export: { args: ['export'] },
  backup: { args: ['backup', 'backup.db'] },
  doctor: { args: ['doctor'] },
  openapi: { args: ['openapi'] },
  'config set': { args: ['config', 'set', 'timeout', '30s'] },
  'stores list': { args: ['stores', 'list'] },
}

/** Runs commands of the program, and gives the file in which each has written down what it loaded. */
export async function recordCommands({ folder, env, node }) {
  const cwd = join(folder, 'commands')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'plants.ndjson'), '{"id":3,"name":"Fern"}\n')
  writeFileSync(join(cwd, 'plants.csv'), 'id,name\n4,Fern\n')
  const own = { ...env, PLANTS_DATA_DIR: join(cwd, 'data'), PLANTS_CONFIG_DIR: join(cwd, 'config') }
  const place = { cwd, env: own, node }
  const asked = Object.entries(commands).map(([title, command]) => runCommand(title, command, place))
  return [...asked, await prompt(place), ...(await recordService(place))]
}

function runCommand(title, { args, status = 0, env }, place) {
  const { record, first, variables } = recorded(title, place)
  const options = { cwd: place.cwd, env: { ...place.env, ...variables, ...env } }
  const { status: code, stderr } = spawnSync(place.node, [...first, plants, ...args], options)
  if (code !== status) throw new Error(`${title} ended with ${code}: ${stderr}`)
  return { title, record }
}

/** What asks is left with Ctrl-C. */
async function prompt({ node, cwd, env }) {
  const title = 'create, on a terminal'
  const { record, first, variables } = recorded(title, { cwd })
  const pty = spawn(node, [...first, plants, 'create'], { cwd, env: { ...env, ...variables, TERM: 'xterm' } })
  pty.onData((data) => {
    if (data.includes('?')) pty.write('\x03')
  })
  await new Promise((resolve) => pty.onExit(resolve))
  return { title, record }
}

/** A service, and those who create plants with it. */
async function recordService(place) {
  const { record, first, variables } = recorded('serve', place)
  const env = { ...place.env, ...variables, PLANTS_SERVE_TOKEN: token }
  const peer = { ...peers.serve, args: (turn) => [...first, ...peers.serve.args(turn)] }
  const { url, stop } = await start(peer, {
    folder: place.cwd,
    store: join(place.cwd, 'served.db'),
    env,
    node: place.node,
  })
  writeFileSync(join(place.cwd, 'token'), token)
  const adding = ['stores', 'add', 'safe', url, '--token-command', 'cat token']
  const records = [
    runCommand('create, remote', { args: [...flags(5), '--store', url], env: { PLANTS_TOKEN: token } }, place),
    runCommand('stores add, with a token command', { args: adding }, place),
    runCommand('create, remote, token command', { args: [...flags(6), '--store', 'safe'] }, place),
  ]
  await stop()
  return [...records, { title: 'serve', record }]
}

function recorded(title, { cwd }) {
  const record = join(cwd, `${title.replaceAll(/\W+/g, '-')}.json`)
  const { args: first, env: variables } = recordTo(record)
  return { record, first, variables }
}
