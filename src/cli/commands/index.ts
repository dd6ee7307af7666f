import type { CommandDefinition } from '../define-command.js'

/** Without `load` for `help`, which the program itself defines. */
type ListedCommand = readonly [summary: string, load?: () => Promise<CommandDefinition>]

/** As the help lists them. */
export const groups: Readonly<Record<string, Readonly<Record<string, ListedCommand>>>> = {
  Plants: {
    create: ['create a plant', async () => (await import('./create.js')).create],
    get: ['show plants by id', async () => (await import('./list.js')).get],
    list: ['list or search plants', async () => (await import('./list.js')).list],
    count: ['count plants', async () => (await import('./count.js')).count],
    update: ['change plants', async () => (await import('./update.js')).update],
    delete: ['delete plants', async () => (await import('./delete.js')).deletePlant],
  },
  Files: {
    import: ['create many plants', async () => (await import('./import.js')).importPlants],
    export: ['write plants to a file', async () => (await import('./export.js')).exportPlants],
    backup: ['copy the store to a file', async () => (await import('./backup.js')).backup],
    restore: ['restore a backup', async () => (await import('./backup.js')).restore],
  },
  Service: {
    serve: ['serve a store over HTTP', async () => (await import('./serve.js')).serve],
    tokens: ['manage service tokens', async () => (await import('./tokens.js')).tokens],
    auth: ['save a token', async () => (await import('./auth.js')).auth],
    openapi: ['describe the HTTP API', async () => (await import('./openapi.js')).openapi],
  },
  Setup: {
    stores: ['name and select stores', async () => (await import('./stores.js')).stores],
    config: ['read and change settings', async () => (await import('./config.js')).config],
    doctor: ['check for problems', async () => (await import('./doctor.js')).doctor],
    completion: ['set up shell completion', async () => (await import('./completion.js')).completion],
    version: ['show the version', async () => (await import('./version.js')).version],
    help: ['show help'],
  },
}

export const examples = ['plants create --id 1 --name Fern --tag shade', 'plants list --search fern']

export const topics = {
  options: 'the options of every command',
  environment: 'settings and environment variables, and their precedence',
  'exit-codes': 'exit codes and what they mean',
  formats: 'formats of plants, output and errors',
}
