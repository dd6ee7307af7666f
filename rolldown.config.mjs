import { thirdPartyNotices } from './bin/build/bundled-packages.mjs'

// What every run loads, or a Tab in a shell, and what a `create` loads besides: one file each, because each file more costs a start 0.4 ms.
// What only some runs need stays apart.
const main = [
  /\/src\/(errors|flags|io|json|output|plant|run)\.ts$/,
  /\/src\/io\/(?!compile-cache)/,
  /\/src\/command-line\/(?!program|usage)/,
  /\/src\/help\/(layout|topics)\.ts$/,
  /\/src\/output\/(redact|visible|wrap)\.ts$/,
  /\/src\/(bulk\/formats\/format-names|service\/defaults|settings\/(file|origin|store-name|table)|stores\/(open|shown-address|store))\.ts$/,
  /^(?!.*\/node_modules\/).*\/package\.json$/,
]
const create = [
  /\/src\/(access|folder|input|loopback|settings|socket-owner)\.ts$/,
  /\/src\/access\/(credentials|token)\.ts$/,
  /\/src\/command-line\/(program|usage)\.ts$/,
  /\/src\/commands\/(create|delete|get|list)\.ts$/,
  /\/src\/settings\/preferences\.ts$/,
  /\/src\/stores\/wait\.ts$/,
  /\/node_modules\/commander\//,
]
const sqlite = /\/src\/stores\/(sqlite|sqlite\/(driver|failure|file|lock|row|schema|tokens|ways|writer))\.ts$/
const remote = /\/src\/stores\/(remote|remote\/(answer|exchange|failure|keys|parser|request|sockets))\.ts$/

// With what it takes to log in, which nothing else needs.
const postgres =
  /\/src\/(access\/(login|login-certificates|password|password-file)|stores\/(postgres|postgres\/(?!foresee|init|inspect|staging)[\w-]+))\.ts$|\/node_modules\/postgres\//

// What packages load and we never use: commander would start executables for subcommands that are programs of their own
// (2 ms), conf asks for a place for settings that it is given anyway (and fails where a user has no home), and undici speaks
// HTTP/2 where that is allowed (4 ms), and sends bodies that are forms or streams.
const unused = [
  { id: 'node:child_process', importer: '/commander/' },
  { id: 'env-paths', importer: '/conf/' },
  { id: './client-h2.js', importer: '/undici/' },
  { id: '../web/fetch/body.js', importer: '/undici/' },
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
  plugins: [withoutUnused, thirdPartyNotices],
  logLevel: 'warn',
  output: {
    dir: 'dist',
    cleanDir: true,
    format: 'cjs',
    minify: true,
    codeSplitting: {
      groups: [
        { name: 'main', test: (id) => main.some((pattern) => pattern.test(id)), priority: 3 },
        { name: 'create', test: (id) => create.some((pattern) => pattern.test(id)), priority: 2 },
        { name: 'sqlite', test: sqlite, priority: 1 },
        { name: 'remote', test: remote },
        { name: 'postgres', test: postgres },
      ],
    },
  },
}
