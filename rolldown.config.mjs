import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { thirdPartyNotices } from './bin/build/bundled-packages.mjs'

/**
 * The files that are loaded together, because each file more costs a start 0.4 ms: for each of these names, what its
 * entries import statically, and no name above it has. All else is loaded where it is imported.
 */
const chunks = {
  // every run: enough for --version and --help
  start: ['platform/io.ts', 'cli/program/run.ts'],
  // every run with a command
  create: [
    'cli/program/program.ts',
    ...['create', 'list'].map((name) => `cli/commands/${name}.ts`),
    ...['files', 'growing-buffer'].map((name) => `platform/${name}.ts`),
    ...['plan', 'store', 'search'].map((name) => `stores/common/${name}.ts`),
  ],
  sqlite: ['stores/sqlite/sqlite-store.ts'],
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

// Modules that packages import, and we do without: commander's is for speed, 3 ms of each start, and only for
// subcommands that are programs of their own. Tests hold the others: conf's fails where a user has no home, and the
// debug of https-proxy-agent prints the password of a proxy where DEBUG is set.
const replaced = [
  { id: 'node:child_process', importer: '/commander/' },
  { id: 'env-paths', importer: '/conf/' },
  { id: 'debug', importer: '/https-proxy-agent/' },
]
const withoutReplaced = {
  name: 'without-replaced',
  // One for each package, so that none of them loads the chunk of another.
  resolveId: (id, importer) => {
    const entry = replaced.find((candidate) => candidate.id === id && importer?.includes(candidate.importer))
    return entry && `\0empty${entry.importer}${id}`
  },
  load: (id) => (id.startsWith('\0empty') ? 'export default () => () => {}' : undefined),
}

export default {
  // A thread is started from a file of its own.
  input: { main: 'src/main.ts', 'workbook-worker': 'src/transfer/formats/workbook-worker.js' },
  platform: 'node',
  external: ['@photostructure/sqlite', 'pg-native'],
  plugins: [withoutReplaced, thirdPartyNotices],
  // pg would create a Response to find out whether it runs at Cloudflare: in Node 20, that loads all of fetch (20 ms).
  transform: { define: { 'process.env.NODE_PG_FORCE_NATIVE': 'undefined', navigator: '({ userAgent: "Node.js" })' } },
  logLevel: 'warn',
  output: {
    dir: 'dist',
    cleanDir: true,
    format: 'cjs',
    minify: true,
    dynamicImportInCjs: false, // in a vm.Script, `import()` fails
    charset: 'ascii', // which bin/plants.js reads as latin1, and V8 keeps in half of the memory
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
