/**
 * Modules that packages import, but the program does not need. An update of a package may import
 * them by another name, or use them. Then test/nightly/release/replaced-modules.test.ts fails, and
 * so do the tests of the modules that a start loads, of a user without a home, and of logins at a
 * database.
 */
export const replacedModules = [
  // It runs subcommands that are programs, of which there are none, and takes 3 ms of each start.
  { id: 'node:child_process', importer: 'commander' },
  // It throws where a user has no home.
  { id: 'env-paths', importer: 'conf' },
  // They check settings against a JSON schema, which the program does not give, in 160 KB.
  { id: 'ajv/dist/2020.js', importer: 'conf' },
  { id: 'ajv-formats', importer: 'conf' },
  // It reads the password file of libpq, as src/auth does.
  { id: 'pgpass', importer: 'pg' },
  // It parses addresses, as src/stores/postgres does.
  { id: 'pg-connection-string', importer: 'pg' },
]

/**
 * Names the module that replaces another one in the bundle. Each package that imports it has its
 * own replacement, so that it does not load the chunk of another package.
 */
export function nameReplacement({ id, importer }) {
  return `\0empty/${importer}/${id}`
}

/** A plugin that bundles a function which does nothing instead of these modules. */
export const withoutReplacedModules = {
  name: 'without-replaced-modules',
  resolveId(id, importer) {
    const entry = replacedModules.find(
      (candidate) => candidate.id === id && importer && isInPackage(importer, candidate.importer),
    )
    return entry && nameReplacement(entry)
  },
  load: (id) =>
    id.startsWith('\0empty') ? 'export default () => () => {}; export class Ajv2020 {}' : undefined,
}

function isInPackage(path, name) {
  return path.replaceAll('\\', '/').includes(`/node_modules/${name}/`)
}
