// What a `create` needs is one file, because each file more costs a start 0.4 ms. What only some runs need stays apart.
const eager =
  /\/src\/(?!stores\/(sqlite|remote)|service|commands\/(serve|tokens|openapi|auth|stores|config|doctor)|prompts|proxy|table|certificates|help-environment|token-command|token-status|file-lock|nearest|trace|doctor|settings\/(change|saved-value|schema))|\/package\.json$|\/node_modules\/(commander|zod)\//

// commander starts executables for subcommands that are programs of their own. We have none, and loading this takes 2 ms.
const withoutChildProcess = {
  name: 'without-child-process',
  resolveId: (id, importer) => (id === 'node:child_process' && importer?.includes('/commander/') ? '\0empty' : undefined),
  load: (id) => (id === '\0empty' ? 'export default {}' : undefined),
}

export default {
  input: 'src/start.ts',
  platform: 'node',
  external: ['@photostructure/sqlite'],
  plugins: [withoutChildProcess],
  logLevel: 'warn',
  output: {
    dir: 'dist',
    cleanDir: true,
    format: 'cjs',
    minify: true,
    codeSplitting: {
      groups: [
        { name: 'core', test: eager, priority: 2 },
        { name: 'sqlite', test: /\/src\/stores\/sqlite(?!\/inspect)/, priority: 1 },
        { name: 'remote', test: /\/src\/stores\/remote(?!\/(proxy|check-token))/ },
      ],
    },
  },
}
