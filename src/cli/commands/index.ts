import type { Define } from '../command.js'

type ListedCommand = readonly [summary: string, load: () => Promise<Define>, ...aliases: string[]]

/** As the help lists them. */
export const groups: Readonly<Record<string, Readonly<Record<string, ListedCommand>>>> = {
  Plants: {
    create: ['create a plant', async () => (await import('./create.js')).defineCreate, 'new', 'add'],
    get: ['show plants by id', async () => (await import('./list.js')).defineGet, 'show'],
    list: ['list or search plants', async () => (await import('./list.js')).defineList, 'ls'],
    count: ['count plants', async () => (await import('./count.js')).defineCount],
    update: ['change plants', async () => (await import('./update.js')).defineUpdate],
    delete: ['delete plants', async () => (await import('./delete.js')).defineDelete, 'rm', 'remove'],
  },
  Files: {
    import: ['create many plants', async () => (await import('./import.js')).defineImport],
    export: ['write plants to a file', async () => (await import('./export.js')).defineExport],
    backup: ['copy the store to a file', async () => (await import('./backup.js')).defineBackup],
    restore: ['restore a backup', async () => (await import('./backup.js')).defineRestore],
  },
  Service: {
    serve: ['serve a store over HTTP', async () => (await import('./serve.js')).defineServe],
    tokens: ['manage service tokens', async () => (await import('./tokens.js')).defineTokens, 'token'],
    auth: ['save a token', async () => (await import('./auth.js')).defineAuth],
    openapi: ['describe the HTTP API', async () => (await import('./version.js')).defineOpenapi],
  },
  Setup: {
    stores: ['name and select stores', async () => (await import('./stores.js')).defineStores, 'store'],
    config: ['read and change settings', async () => (await import('./config.js')).defineConfig, 'setting', 'settings'],
    doctor: ['check for problems', async () => (await import('./doctor.js')).defineDoctor],
    completion: ['set up shell completion', async () => (await import('./completion.js')).defineCompletion],
    version: ['show the version', async () => (await import('./version.js')).defineVersion],
    help: ['show help', async () => (await import('./help.js')).defineHelp],
  },
}

export const listed: Readonly<Record<string, ListedCommand>> = Object.assign({}, ...Object.values(groups))
