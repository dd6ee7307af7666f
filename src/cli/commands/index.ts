import type { CommandDefinition } from '../command.js'

/** What the help of the program shows of a command, whose file is loaded when a line names it. */
export interface ListedCommand {
  group: 'Plants:' | 'Files:' | 'Service:' | 'Setup:'
  summary: string
  aliases?: readonly string[]
  load(): Promise<CommandDefinition>
}

/** In the order of the help. */
export const listed: Readonly<Record<string, ListedCommand>> = {
  create: {
    group: 'Plants:',
    summary: 'create a plant',
    aliases: ['new', 'add'],
    load: async () => (await import('./create.js')).defineCreate,
  },
  get: {
    group: 'Plants:',
    summary: 'show plants by id',
    aliases: ['show'],
    load: async () => (await import('./get.js')).defineGet,
  },
  list: {
    group: 'Plants:',
    summary: 'list or search plants',
    aliases: ['ls'],
    load: async () => (await import('./list.js')).defineList,
  },
  count: {
    group: 'Plants:',
    summary: 'count plants',
    load: async () => (await import('./count.js')).defineCount,
  },
  update: {
    group: 'Plants:',
    summary: 'change plants',
    load: async () => (await import('./update.js')).defineUpdate,
  },
  delete: {
    group: 'Plants:',
    summary: 'delete plants',
    aliases: ['rm'],
    load: async () => (await import('./delete.js')).defineDelete,
  },
  import: {
    group: 'Files:',
    summary: 'create many plants',
    load: async () => (await import('./import/import.js')).defineImport,
  },
  export: {
    group: 'Files:',
    summary: 'write plants to a file',
    load: async () => (await import('./export.js')).defineExport,
  },
  backup: {
    group: 'Files:',
    summary: 'copy the store to a file',
    load: async () => (await import('./backup.js')).defineBackup,
  },
  restore: {
    group: 'Files:',
    summary: 'restore a backup',
    load: async () => (await import('./restore.js')).defineRestore,
  },
  serve: {
    group: 'Service:',
    summary: 'serve a store over HTTP',
    load: async () => (await import('./serve.js')).defineServe,
  },
  tokens: {
    group: 'Service:',
    summary: 'manage service tokens',
    load: async () => (await import('./tokens.js')).defineTokens,
  },
  auth: {
    group: 'Service:',
    summary: 'save a token',
    load: async () => (await import('./auth.js')).defineAuth,
  },
  openapi: {
    group: 'Service:',
    summary: 'describe the HTTP API',
    load: async () => (await import('./openapi.js')).defineOpenapi,
  },
  stores: {
    group: 'Setup:',
    summary: 'name and select stores',
    load: async () => (await import('./stores.js')).defineStores,
  },
  config: {
    group: 'Setup:',
    summary: 'read and change settings',
    load: async () => (await import('./config.js')).defineConfig,
  },
  doctor: {
    group: 'Setup:',
    summary: 'check for problems',
    load: async () => (await import('./doctor.js')).defineDoctor,
  },
  completion: {
    group: 'Setup:',
    summary: 'set up shell completion',
    load: async () => (await import('./completion.js')).defineCompletion,
  },
  version: {
    group: 'Setup:',
    summary: 'show the version',
    load: async () => (await import('./version.js')).defineVersion,
  },
  help: {
    group: 'Setup:',
    summary: 'show help',
    load: async () => (await import('./help.js')).defineHelp,
  },
}
