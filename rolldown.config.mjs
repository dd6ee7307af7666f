// What a `create` needs is one file, because each file more costs a start 0.4 ms. What only some runs need stays apart.
const eager =
  /\/src\/(?!stores\/(sqlite|remote)|service|bulk\/(?!format-names)|plant-rows|plant-order|commands\/(import|serve|tokens|openapi|auth|stores|config|doctor)|access\/(certificates|proxy|token-command|token-status)|output\/(table|trace)|prompts|help-environment|file-lock|nearest|doctor|settings\/(key|replace|saved-value|schema))|\/package\.json$|\/node_modules\/(commander|zod)\//

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
        { name: 'core', test: eager, priority: 2 },
        { name: 'sqlite', test: /\/src\/stores\/sqlite(?!\/(inspect|bulk|changeset))/, priority: 1 },
        { name: 'remote', test: /\/src\/stores\/remote(?!\/(proxy|check-token))/ },
      ],
    },
  },
}
