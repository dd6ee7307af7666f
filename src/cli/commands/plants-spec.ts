import type { GlobalFlags } from '../flags.js'
import { type CommandSpec, command, type Flag, type FlagValues } from '../spec.js'

const id = { term: '<id>', meaning: 'identification number' }

/** The flags that choose some of the plants. */
export const queryFlags = [
  { term: '--limit <count>', meaning: 'at most so many' },
  { term: '--after <int64>', meaning: 'only ids greater than this one' },
  { term: '--tag <text>', meaning: 'only plants with this tag' },
] as const satisfies readonly Flag[]

export type ListFlags = GlobalFlags & FlagValues<typeof queryFlags>

const createFlags = [
  { term: '--id <int64>', meaning: 'identification number' },
  { term: '--name <text>', meaning: 'name of the plant' },
  { term: '--tag <text>', meaning: 'type of the plant' },
  {
    term: '--file <path>',
    meaning: 'read the plant as JSON from a file, or from stdin with "-"; flags override its fields',
    values: 'file',
  },
  { term: '--idempotency-key <key>', meaning: 'make it safe to repeat: the same key and plant get the same answer' },
  { term: '--dry-run', meaning: 'show what would be sent where, and create nothing' },
  { term: '--curl', meaning: 'print the curl command that would create it at a service, and create nothing' },
] as const satisfies readonly Flag[]

export type CreateFlags = GlobalFlags & FlagValues<typeof createFlags>

export const create = command({
  name: 'create',
  summary: 'create a plant',
  description: 'Create a plant, from flags, from JSON in a file or on stdin, or from answers to questions.',
  flags: createFlags,
  examples: [
    'plants create --id 1 --name Fern --tag shade',
    'plants create --file fern.json',
    `echo '{"id":2,"name":"Moss"}' | plants create`,
    'plants create --id 1 --name Fern --dry-run',
  ],
  run: async ({ flags }, io) => (await import('./create.js')).create(flags(), io),
})

export const get: CommandSpec = {
  name: 'get',
  summary: 'show a plant',
  description: 'Show the plant that has this id.',
  arguments: [id],
  examples: ['plants get 1'],
  run: async ({ args: [text = ''], flags }, io) => (await import('./get.js')).get(text, flags(), io),
}

export const list = command({
  name: 'list',
  summary: 'list the plants',
  description: 'List the plants in the order of their ids: a table on a terminal, else one JSON object a line.',
  flags: queryFlags,
  examples: ['plants list --tag shade', 'plants list --limit 100 --after 1000'],
  run: async ({ flags }, io) => (await import('./list.js')).list(flags(), io),
})

const deleteFlags = [{ term: '--yes', meaning: 'do not ask' }] as const satisfies readonly Flag[]

export type DeleteFlags = GlobalFlags & FlagValues<typeof deleteFlags>

export const deletePlant = command({
  name: 'delete',
  summary: 'delete a plant',
  description: 'Delete the plant that has this id, and print it, so that it can be created again.',
  arguments: [id],
  flags: deleteFlags,
  examples: ['plants delete 1', 'plants delete 1 --yes > deleted.json'],
  run: async ({ args: [text = ''], flags }, io) => (await import('./delete.js')).deletePlant(text, flags(), io),
})
