import { commonFormats, type OutputFormat, outputFormats } from '../../config/option-values.js'
import type { CommandDefinition } from '../command.js'

/** What the commands of a group have in common. A command may have its own instead. */
interface CommandDefaults {
  /** The long flags of the global options that the help lists. */
  globalOptions: readonly string[]
  /** The formats that the command prints. */
  formats: readonly OutputFormat[]
  /** The page about the command, which its help names. */
  topic?: string
}

/** A command in the help of the program. Its file is only loaded when a command line names it. */
interface CommandEntry {
  summary: string
  aliases?: readonly string[]
  load(): Promise<{ define: CommandDefinition }>
}

export interface ListedCommand extends CommandEntry, CommandDefaults {
  /** The heading above the command in the help of the program. */
  group: string
}

/** Lists the commands of a group, in the order of the help. */
function listGroup(
  group: string,
  defaults: Partial<CommandDefaults>,
  commands: Readonly<Record<string, CommandEntry & Partial<CommandDefaults>>>,
): [name: string, command: ListedCommand][] {
  const common = { group, globalOptions: [], formats: commonFormats, ...defaults }
  return Object.entries(commands).map(([name, command]) => [name, { ...common, ...command }])
}

const storeAndOutput = ['--store', '--output']
const plantsDefaults = { globalOptions: storeAndOutput, formats: outputFormats, topic: 'plants' }

/** All commands, in the order of the help. */
export const listedCommands: ReadonlyMap<string, ListedCommand> = new Map([
  ...listGroup('Plants:', plantsDefaults, {
    create: {
      summary: 'create a plant',
      aliases: ['new', 'add'],
      load: () => import('./create.js'),
    },
    get: { summary: 'show plants by id', aliases: ['show'], load: () => import('./get.js') },
    list: { summary: 'list or search plants', aliases: ['ls'], load: () => import('./list.js') },
    count: { summary: 'count plants', load: () => import('./count.js') },
    update: { summary: 'change plants', load: () => import('./update.js') },
    delete: { summary: 'delete plants', aliases: ['rm'], load: () => import('./delete.js') },
  }),
  ...listGroup(
    'Store:',
    { globalOptions: storeAndOutput, topic: 'backups' },
    {
      import: {
        summary: 'import plants from a spreadsheet, CSV or JSON',
        topic: 'importing',
        load: () => import('./import/import.js'),
      },
      export: {
        formats: ['ndjson', 'json', 'csv', 'tsv'],
        summary: 'write plants to a file',
        load: () => import('./export.js'),
      },
      backup: { summary: 'copy the store to a file', load: () => import('./backup.js') },
      restore: { summary: 'restore a backup', load: () => import('./restore.js') },
      doctor: {
        summary: 'check for problems',
        topic: 'troubleshooting',
        load: () => import('./doctor.js'),
      },
    },
  ),
  ...listGroup(
    'Service:',
    { globalOptions: ['--store'], topic: 'run-a-service' },
    {
      serve: { summary: 'serve a store over HTTP', load: () => import('./serve.js') },
      tokens: {
        summary: 'manage tokens of a service that you run',
        load: () => import('./tokens.js'),
      },
      auth: {
        summary: 'log in to a service that somebody else runs',
        topic: 'use-a-service',
        load: () => import('./auth.js'),
      },
      openapi: {
        globalOptions: [],
        formats: ['json'],
        summary: 'describe the HTTP API',
        topic: 'http-api',
        load: () => import('./openapi.js'),
      },
    },
  ),
  ...listGroup(
    'Setup:',
    { topic: 'settings' },
    {
      stores: { summary: 'name and select stores', load: () => import('./stores.js') },
      config: { summary: 'read and change settings', load: () => import('./config.js') },
    },
  ),
  ...listGroup(
    'Setup:',
    {},
    {
      completion: {
        formats: ['text'],
        summary: 'set up shell completion',
        topic: 'install',
        load: () => import('./completion.js'),
      },
      version: { summary: 'show the version', load: () => import('./version.js') },
      help: { summary: 'show help', load: () => import('./help.js') },
    },
  ),
])
