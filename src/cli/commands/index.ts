import { type OutputFormat, outputFormats } from '../../config/option-values.js'
import type { CommandDefinition } from '../command.js'

/** The groups of commands, with the global options that the help of their commands lists. */
export const commandGroups = {
  'Plants:': ['--store', '--output'],
  'Store:': ['--store', '--output'],
  'Service:': ['--store'],
  'Setup:': [],
} as const

/** A command in the help of the program. Its file is only loaded when a command line names it. */
export interface ListedCommand {
  group: keyof typeof commandGroups
  /** The long flags of the global options that its help lists; by default, those of the group. */
  globalOptions?: readonly string[]
  /** The formats that it prints; by default, those of commands that print no plants. */
  formats?: readonly OutputFormat[]
  summary: string
  aliases?: readonly string[]
  /** The page about the command, which its help names. */
  topic?: string
  load(): Promise<{ define: CommandDefinition }>
}

/** All commands, in the order of the help. */
export const listedCommands: Readonly<Record<string, ListedCommand>> = {
  create: {
    group: 'Plants:',
    formats: outputFormats,
    summary: 'create a plant',
    aliases: ['new', 'add'],
    topic: 'plants',
    load: () => import('./create.js'),
  },
  get: {
    group: 'Plants:',
    formats: outputFormats,
    summary: 'show plants by id',
    aliases: ['show'],
    topic: 'plants',
    load: () => import('./get.js'),
  },
  list: {
    group: 'Plants:',
    formats: outputFormats,
    summary: 'list or search plants',
    aliases: ['ls'],
    topic: 'plants',
    load: () => import('./list.js'),
  },
  count: {
    group: 'Plants:',
    formats: outputFormats,
    summary: 'count plants',
    topic: 'plants',
    load: () => import('./count.js'),
  },
  update: {
    group: 'Plants:',
    formats: outputFormats,
    summary: 'change plants',
    topic: 'plants',
    load: () => import('./update.js'),
  },
  delete: {
    group: 'Plants:',
    formats: outputFormats,
    summary: 'delete plants',
    aliases: ['rm'],
    topic: 'plants',
    load: () => import('./delete.js'),
  },
  import: {
    group: 'Store:',
    summary: 'import plants from a spreadsheet, CSV or JSON',
    topic: 'importing',
    load: () => import('./import/import.js'),
  },
  export: {
    group: 'Store:',
    formats: ['ndjson', 'json', 'csv', 'tsv'],
    summary: 'write plants to a file',
    topic: 'backups',
    load: () => import('./export.js'),
  },
  backup: {
    group: 'Store:',
    summary: 'copy the store to a file',
    topic: 'backups',
    load: () => import('./backup.js'),
  },
  restore: {
    group: 'Store:',
    summary: 'restore a backup',
    topic: 'backups',
    load: () => import('./restore.js'),
  },
  doctor: {
    group: 'Store:',
    summary: 'check for problems',
    topic: 'troubleshooting',
    load: () => import('./doctor.js'),
  },
  serve: {
    group: 'Service:',
    summary: 'serve a store over HTTP',
    topic: 'run-a-service',
    load: () => import('./serve.js'),
  },
  tokens: {
    group: 'Service:',
    summary: 'manage tokens of a service that you run',
    topic: 'run-a-service',
    load: () => import('./tokens.js'),
  },
  auth: {
    group: 'Service:',
    summary: 'log in to a service that somebody else runs',
    topic: 'use-a-service',
    load: () => import('./auth.js'),
  },
  openapi: {
    group: 'Service:',
    globalOptions: [],
    formats: ['json'],
    summary: 'describe the HTTP API',
    topic: 'http-api',
    load: () => import('./openapi.js'),
  },
  stores: {
    group: 'Setup:',
    summary: 'name and select stores',
    topic: 'settings',
    load: () => import('./stores.js'),
  },
  config: {
    group: 'Setup:',
    summary: 'read and change settings',
    topic: 'settings',
    load: () => import('./config.js'),
  },
  completion: {
    group: 'Setup:',
    formats: ['text'],
    summary: 'set up shell completion',
    topic: 'install',
    load: () => import('./completion.js'),
  },
  version: {
    group: 'Setup:',
    summary: 'show the version',
    load: () => import('./version.js'),
  },
  help: {
    group: 'Setup:',
    summary: 'show help',
    load: () => import('./help.js'),
  },
}
