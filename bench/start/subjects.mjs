import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { singleFile } from '../../test/single-file.mjs'
import { print } from '../figures.mjs'

const root = join(import.meta.dirname, '../..')
const plants = join(root, 'bin/plants.js')

/** The program on a Node: the arguments that start it, and those that start its runtime for nothing. */
export function onNode(node, env) {
  const version = execFileSync(node, ['-p', 'process.versions.node'], { env, encoding: 'utf8' }).trim()
  return {
    title: `Node ${version}`,
    major: Number.parseInt(version, 10),
    command: [node, plants],
    bare: [node, '-e', '0'],
    bareTitle: '-e 0',
  }
}

/** The program as a single file, where there is one. */
export function compiled(folder, env) {
  const file = singleFile()
  if (file !== undefined)
    return { title: 'file', command: [file], bare: emptyFile(folder, env), bareTitle: 'an empty program' }
  print('The single file is left out. Make it with: npm run build:binary, or name one: PLANTS_BIN=PATH')
  return undefined
}

/** A single file that does nothing; undefined where there is no Bun to make it. */
function emptyFile(folder, env) {
  const scope = join(root, 'node_modules/@oven')
  const compilers = existsSync(scope)
    ? readdirSync(scope)
        .map((name) => join(scope, name, 'bin/bun'))
        .filter(existsSync)
    : []
  if (compilers.length === 0) return undefined
  const [source, file] = [join(folder, 'nothing.js'), join(folder, 'nothing')]
  writeFileSync(source, '0')
  const flags = [
    '--compile',
    '--bytecode',
    '--format=esm',
    '--minify',
    '--no-compile-autoload-dotenv',
    '--no-compile-autoload-bunfig',
  ]
  execFileSync(compilers[0], ['build', ...flags, source, '--outfile', file], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return [file]
}

/** What is started of a subject, each as a row of the table. */
export function rowsOf({ title, major, command, bare, bareTitle }, bench) {
  const rows = Object.entries(kinds).map(([kind, { what, args, ...more }]) => ({
    ...more,
    kind,
    subject: title,
    major,
    title: `${title}: ${what}`,
    argv: () => [...command, ...args(bench)],
    env: bench[more.env],
  }))
  const nothing = { kind: 'bare', subject: title, major, title: `${title}: ${bareTitle}`, argv: () => bare }
  return bare === undefined ? rows : [nothing, ...rows]
}

const create = ({ nextId }) => ['create', '--id', nextId(), '--name', 'Fern']

const kinds = {
  version: { what: '--version', args: () => ['--version'] },
  create: { what: 'create', args: create },
  remote: { what: 'create, remote', args: (bench) => [...create(bench), '--store', bench.url], env: 'remote' },
}
