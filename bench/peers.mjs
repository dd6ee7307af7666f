import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const cache = join(root, 'node_modules/.cache/bench')
const bin = (name) => join(cache, 'node_modules/.bin', name)

const plants = join(root, 'bin/plants.js')

/**
 * The servers, each by the arguments that Node starts it with. One that has a `package` is told its port and comes from
 * npm; the others tell their address on stdout. `status` is its answer to a create where that is not 200.
 */
export const peers = {
  echo: {
    title: 'echo, bare node:http',
    args: () => [join(import.meta.dirname, 'echo.mjs')],
  },
  serve: {
    title: 'plants serve',
    args: ({ store }) => [plants, 'serve', '--store', store, '--port', '0'],
  },
  prism: {
    title: 'Prism 5.14.2',
    package: '@stoplight/prism-cli@5.14.2',
    prepare: ({ folder, env }) =>
      writeFileSync(join(folder, 'openapi.json'), execFileSync(process.execPath, [plants, 'openapi'], { env })),
    args: ({ folder, port }) => [
      bin('prism'),
      'mock',
      join(folder, 'openapi.json'),
      '--port',
      port,
      '--verboseLevel',
      'silent',
    ],
  },
  'json-server': {
    title: 'json-server 0.17.4',
    package: 'json-server@0.17.4',
    status: 201,
    prepare: ({ folder }) => writeFileSync(join(folder, 'db.json'), '{"plants":[]}'),
    args: ({ folder, port }) => [
      bin('json-server'),
      join(folder, 'db.json'),
      '--host',
      '127.0.0.1',
      '--port',
      port,
      '--quiet',
    ],
  },
}

/** The arguments that Node lists a store with. */
export function listOf(store) {
  return [plants, 'list', '--store', store]
}

/** Brings what the named peers need into a cache folder; a second time that is quick. */
export function install(names, env) {
  const packages = names.map((name) => peers[name].package).filter((name) => name !== undefined)
  if (packages.length === 0) return
  mkdirSync(cache, { recursive: true })
  // A package of its own: npm would look for one in the folders above.
  const manifest = join(cache, 'package.json')
  if (!existsSync(manifest)) writeFileSync(manifest, '{"private":true}')
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel', 'error']
  execFileSync('npm', ['install', ...options, ...packages], { cwd: cache, env, stdio: ['ignore', 'ignore', 'inherit'] })
}
