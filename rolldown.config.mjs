import { bundledPackages } from './bin/build/bundled-packages.mjs'
import { helpPages } from './bin/build/help-pages.mjs'
import { rawText } from './bin/build/raw-text.mjs'
import { withoutReplacedModules } from './bin/build/replaced-modules.mjs'

// Each kind of store is one file, and what the kinds share is another one: a create in a SQLite
// file must not load what speaks to a service. The modules that are listed here are bundled where
// they are imported, because only `doctor`, `auth`, `backup`, `restore` and the lists of a service
// need them.
const rareModules = ['backup', 'check-token', 'diagnose', 'select']
const store = RegExp(
  String.raw`[\\/]src[\\/]stores[\\/](?:(?<kind>\w+)[\\/])?(?!${rareModules.join('|')})[\w-]+\.ts$`,
)

// No start needs the lock, which is for changes of settings and imports, or the schemas, which load
// zod to explain what is wrong. Several entries import them.
const common = /[\\/]src[\\/](?!platform[\\/]file-lock|plant[\\/]schema)/

/** @type {import('rolldown').RolldownOptions & { output: import('rolldown').OutputOptions }} */
export default {
  input: { main: 'src/main.ts' },
  platform: 'node',
  external: ['@photostructure/sqlite', 'pg-native'],
  tsconfig: false, // its path of saxes is for types
  // A UMD module would require files that are not in dist.
  resolve: { mainFields: ['module', 'main'] },
  plugins: [withoutReplacedModules, rawText, helpPages, bundledPackages],
  // pg would create a Response to find out whether it runs at Cloudflare. In Node.js 20, that loads
  // all of fetch, which takes 20 ms.
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
    // What many commands share is one file, and so is a kind of store. A create loads 9 files, and
    // without this 37.
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
