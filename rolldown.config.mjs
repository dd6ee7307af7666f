import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { thirdPartyNotices } from './bin/build/bundled-packages.mjs'

/**
 * The files that are loaded together, because each file more costs a start 0.4 ms: for each of these names, what its
 * entries import statically, and no name above it has. All else is loaded where it is imported.
 */
const chunks = {
  // every run
  common: ['platform/io.ts', 'cli/program/run.ts'],
  // every run with a command, and a Tab in a shell
  program: ['cli/program/program.ts', 'cli/context.ts', 'platform/clock.ts'],
  // what reads and writes single plants, and what services and databases share
  create: [
    'platform/files.ts',
    'platform/growing-buffer.ts',
    'stores/common/plan.ts',
    'stores/common/store.ts',
    'stores/common/pages.ts',
    'stores/common/search.ts',
    ...['create', 'list'].map((name) => `cli/commands/${name}.ts`),
  ],
  // what changes or reads several plants
  many: ['cli/commands/delete.ts', 'cli/commands/update.ts'],
  credentials: ['cli/store-access.ts'],
  sqlite: ['stores/sqlite/sqlite-store.ts'],
  http: ['stores/http/remote-store.ts'],
  postgres: ['auth/login-certificates.ts', 'stores/postgres/postgres-address.ts', 'stores/postgres/postgres-store.ts'],
}

const root = import.meta.dirname
const chunkOf = new Map()
for (const [chunk, entries] of Object.entries(chunks)) {
  const files = new Set(entries.map((entry) => join(root, 'src', entry)))
  for (const file of files) for (const imported of importsOf(file)) if (!chunkOf.has(imported)) files.add(imported)
  for (const file of files) chunkOf.set(file, chunk)
}

/** The files of ours that a file imports, for more than their types and not only when it needs them. */
function importsOf(file) {
  const imports = file.endsWith('.ts')
    ? [...readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )[\w*{}\s,]+ from '(\.[^']+)'/gm)]
    : []
  return imports.map(([, path]) => join(dirname(file), path.replace(/\.js$/, '.ts')))
}

// What packages load and we never use: commander would start executables for subcommands that are programs of their own
// (2 ms), conf asks for a place for settings that it is given anyway (and fails where a user has no home), and pg would
// use another driver, or look for a password, where the environment says so; https-proxy-agent would print passwords if
// DEBUG is set.
const unused = [
  { id: 'node:child_process', importer: '/commander/' },
  { id: 'env-paths', importer: '/conf/' },
  { id: 'debug', importer: '/https-proxy-agent/' },
  { id: 'proxy-agent-negotiate', importer: '/https-proxy-agent/' },
  { id: './native', importer: '/pg/lib/index' },
  { id: 'pgpass', importer: '/pg/lib/client' },
]
const empty = 'export default () => () => {}; export const createNegotiateAuth = () => {}'
const withoutUnused = {
  name: 'without-unused',
  // One for each package, so that none of them loads the chunk of another.
  resolveId: (id, importer) => {
    const entry = unused.find((candidate) => candidate.id === id && importer?.includes(candidate.importer))
    return entry && `\0empty${entry.importer}${id}`
  },
  load: (id) => (id.startsWith('\0empty') ? empty : undefined),
}

// Nothing that a chunk exports changes, but each export would be a getter: a seventh of what a start compiles.
const getter =
  /Object\.defineProperty\(exports, "(\w+)", \{\s+enumerable: true,\s+get: function \(\) \{\s+return (\w+);\s+\}\s+\}\);/g
const withoutGetters = { name: 'without-getters', renderChunk: (code) => code.replace(getter, 'exports.$1 = $2;') }

export default {
  input: 'src/main.ts',
  platform: 'node',
  external: ['@photostructure/sqlite'],
  plugins: [withoutUnused, withoutGetters, thirdPartyNotices],
  // pg would create a Response to find out whether it runs at Cloudflare: in Node 20, that loads all of fetch (20 ms).
  transform: { define: { 'process.env.NODE_PG_FORCE_NATIVE': 'undefined', navigator: '({ userAgent: "Node.js" })' } },
  logLevel: 'warn',
  output: {
    dir: 'dist',
    cleanDir: true,
    format: 'cjs',
    minify: true,
    // Each takes the packages along that its files import.
    codeSplitting: {
      groups: Object.keys(chunks).map((name, index, all) => ({
        name,
        test: (id) => chunkOf.get(id) === name,
        priority: all.length - index,
      })),
    },
  },
}
