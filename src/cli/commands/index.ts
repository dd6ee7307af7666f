import type { CommandDefinition } from '../define-command.js'

interface ListedCommand {
  name: string
  summary: string
  /** undefined for `help`, which the program itself defines */
  load?(): Promise<CommandDefinition>
}

/** As the help lists them. */
export const groups: Readonly<Record<string, readonly ListedCommand[]>> = {
  Plants: [
    { name: 'create', summary: 'create a plant', load: async () => (await import('./create.js')).create },
    { name: 'get', summary: 'show plants by id', load: async () => (await import('./list.js')).get },
    { name: 'list', summary: 'list or search plants', load: async () => (await import('./list.js')).list },
    { name: 'count', summary: 'count plants', load: async () => (await import('./count.js')).count },
    { name: 'update', summary: 'change plants', load: async () => (await import('./update.js')).update },
    { name: 'delete', summary: 'delete plants', load: async () => (await import('./delete.js')).deletePlant },
  ],
  Files: [
    { name: 'import', summary: 'create many plants', load: async () => (await import('./import.js')).importPlants },
    { name: 'export', summary: 'write plants to a file', load: async () => (await import('./export.js')).exportPlants },
    { name: 'backup', summary: 'copy the store to a file', load: async () => (await import('./backup.js')).backup },
    { name: 'restore', summary: 'restore a backup', load: async () => (await import('./backup.js')).restore },
  ],
  Service: [
    { name: 'serve', summary: 'serve a store over HTTP', load: async () => (await import('./serve.js')).serve },
    { name: 'tokens', summary: 'manage service tokens', load: async () => (await import('./tokens.js')).tokens },
    { name: 'auth', summary: 'save a token or password', load: async () => (await import('./auth.js')).auth },
    { name: 'openapi', summary: 'describe the HTTP API', load: async () => (await import('./openapi.js')).openapi },
  ],
  Setup: [
    { name: 'stores', summary: 'name and select stores', load: async () => (await import('./stores.js')).stores },
    { name: 'config', summary: 'read and change settings', load: async () => (await import('./config.js')).config },
    { name: 'doctor', summary: 'check for problems', load: async () => (await import('./doctor.js')).doctor },
    {
      name: 'completion',
      summary: 'set up shell completion',
      load: async () => (await import('./completion.js')).completion,
    },
    { name: 'version', summary: 'show the version', load: async () => (await import('./version.js')).version },
    { name: 'help', summary: 'show help' },
  ],
}

export const examples = ['plants create --id 1 --name Fern --tag shade', 'plants list --search fern']

export const topics = {
  options: 'the options of every command',
  environment: 'settings and environment variables, and their precedence',
  'exit-codes': 'exit codes and what they mean',
  formats: 'formats of plants, output and errors',
}
