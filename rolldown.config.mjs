import { bundledPackages } from './bin/build/bundled-packages.mjs'
import { rawText } from './bin/build/raw-text.mjs'
import { withoutReplacedModules } from './bin/build/replaced-modules.mjs'

// A kind of store is a file, as is what the kinds share: a create in a SQLite file must not load
// what speaks to a service. What only `doctor`, `auth`, `backup`, `restore`, an export, a wrong
// scheme and a wrong response need is in neither.
const rare =
  'diagnose|check-token|backup|tls-port|format-lines|response-schemas|explain-response|description-request'
const store = RegExp(
  String.raw`[\\/]src[\\/]stores[\\/](?:(?<kind>\w+)[\\/])?(?!${rare})[\w-]+\.ts$`,
)

// The lock is for changes of settings and imports, and schemas, with zod, are for explanations, from several entries:
// no start needs them.
const common = /[\\/]src[\\/](?!platform[\\/]file-lock|plant[\\/]schema)/

/** @type {import('rolldown').RolldownOptions & { output: import('rolldown').OutputOptions }} */
export default {
  input: { main: 'src/main.ts' },
  platform: 'node',
  external: ['@photostructure/sqlite', 'pg-native'],
  tsconfig: false, // its path of saxes is for types
  resolve: { mainFields: ['module', 'main'] }, // a UMD module would require files that are not in dist
  plugins: [withoutReplacedModules, rawText, bundledPackages],
  // pg would create a Response to find out whether it runs at Cloudflare: in Node 20, that loads all of fetch (20 ms).
  transform: {
    define: {
      'process.env.NODE_PG_FORCE_NATIVE': 'undefined',
      navigator: '({ userAgent: "Node.js" })',
    },
  },
  logLevel: 'warn',
  output: {
    dir: 'dist',
    cleanDir: true,
    format: 'cjs',
    minify: { mangle: { keepNames: true } }, // which the stack of a defect shows
    // What many commands share is one file, as is a kind of store: a create loads 9, and 37 without.
    codeSplitting: {
      groups: [
        { name: 'common', test: common, minShareCount: 5, priority: 1 },
        {
          name: (id) => `${store.exec(id)?.groups?.kind ?? 'common'}-store`,
          test: store,
          debugName: 'stores',
        },
      ],
    },
    dynamicImportInCjs: false, // in a vm.Script, `import()` fails
  },
}
