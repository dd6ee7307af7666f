// What a `create` needs is one file, because each file more costs a start 0.4 ms. What only some runs need stays apart.
const eager = [
  /\/src\/(access|errors|flags|folder|input|io|json|output|plant|run|settings|start|usage)\.ts$/,
  /\/src\/io\//,
  /\/src\/access\/(credentials|loopback|token)\.ts$/,
  /\/src\/commands\/(create|delete|get|list)\.ts$/,
  /\/src\/output\/(redact|visible)\.ts$/,
  /\/src\/settings\/(file|origin|preferences|store-name|table)\.ts$/,
  /\/src\/stores\/(open|store|wait)\.ts$/,
  /\/package\.json$/,
  /\/node_modules\/(commander|zod)\//,
]
const sqlite = /\/src\/stores\/(sqlite|sqlite\/(driver|failure|file|lock|schema|tokens|ways|writer))\.ts$/
const remote = /\/src\/stores\/(remote|remote\/(answer|exchange|failure|keys|parser|sockets))\.ts$/

// What packages load and we never use: commander would start executables for subcommands that are programs of their own
// (2 ms), and conf asks for a place for settings that it is given anyway (and fails where a user has no home).
const unused = [
  { id: 'node:child_process', importer: '/commander/' },
  { id: 'env-paths', importer: '/conf/' },
]
const withoutUnused = {
  name: 'without-unused',
  resolveId: (id, importer) => (unused.some((entry) => entry.id === id && importer?.includes(entry.importer)) ? '\0empty' : undefined),
  load: (id) => (id === '\0empty' ? 'export default {}' : undefined),
}

export default {
  input: 'src/start.ts',
  platform: 'node',
  external: ['@photostructure/sqlite'],
  plugins: [withoutUnused],
  logLevel: 'warn',
  output: {
    dir: 'dist',
    cleanDir: true,
    format: 'cjs',
    minify: true,
    codeSplitting: {
      groups: [
        { name: 'core', test: (id) => eager.some((pattern) => pattern.test(id)), priority: 2 },
        { name: 'sqlite', test: sqlite, priority: 1 },
        { name: 'remote', test: remote },
      ],
    },
  },
}
