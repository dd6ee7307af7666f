import { existsPolicies } from '../../stores/conflict.js'
import { defaultConcurrency } from '../../stores/store.js'
import { formatNames } from '../../transfer/formats/format.js'
import type { GlobalFlags } from '../flags.js'
import { type CommandSpec, command, type Flag, type FlagValues } from '../spec.js'
import { queryFlags } from './plants-spec.js'

const importFlags = [
  {
    term: '--format <name>',
    meaning: 'ndjson, json, csv or tsv; by default what the content looks like',
    values: formatNames,
  },
  { term: '--map <fields>', meaning: 'which fields are the id, the name and the tag: name=CommonName,tag=Family' },
  { term: '--id-from <int64>', meaning: 'number the plants that have no id, from this one on' },
  {
    term: '--if-exists <what>',
    meaning: 'of an id that is taken: error, skip, or same, which skips equal plants',
    preset: 'error',
    values: existsPolicies,
  },
  {
    term: '--on-error <what>',
    meaning: 'of a plant that is refused: continue, or stop before it',
    preset: 'continue',
    values: ['continue', 'stop'],
  },
  { term: '--max-errors <count>', meaning: 'stop soon after so many were refused' },
  {
    term: '--rejects <path>',
    meaning: 'write the refused records to this file, as they came, and why beside it, to PATH.reasons',
    values: 'file',
  },
  { term: '--check', meaning: 'create nothing, only tell what would be refused' },
  { term: '--atomic', meaning: 'create all or none' },
  {
    term: '--journal <path>',
    meaning: 'keep here where the import is; by default in your state directory, for files',
    values: 'file',
  },
  { term: '--no-journal', meaning: 'do not: an import that is stopped begins again' },
  { term: '--restart', meaning: 'begin again, although it was stopped in the middle' },
  { term: '--concurrency <count>', meaning: `requests in flight at most, to a service; by default ${defaultConcurrency}` },
  { term: '--rate <count>', meaning: 'requests a second at most, to a service' },
] as const satisfies readonly Flag[]

export type ImportFlags = GlobalFlags & FlagValues<typeof importFlags>

export const importPlants = command({
  name: 'import',
  summary: 'create many plants',
  description:
    'Create the plants in files, or on stdin: JSON, one a line or not, or CSV. It can be stopped at any moment, and the same command goes on.',
  arguments: [{ term: '[files...]', meaning: 'files, and "-" for stdin; .gz and .zst too', values: 'file' }],
  flags: importFlags,
  examples: [
    'plants import plants.ndjson',
    'plants import list.csv --map name=CommonName,tag=Family --id-from 1',
    'plants import plants.ndjson --rejects refused.ndjson --if-exists same',
    'plants export | plants import --store ./copy.db',
  ],
  run: async ({ args, flags }, io) => (await import('./import.js')).importPlants(args, flags(), io),
})

const exportFlags = [
  {
    term: '--format <format>',
    meaning: 'ndjson, json, csv or tsv; by default what the name of the file says, else ndjson',
    values: formatNames,
  },
  {
    term: '--out <file>',
    meaning: 'replace this file, as a whole; .gz and .zst are compressed. By default stdout',
    values: 'file',
  },
  ...queryFlags,
] as const satisfies readonly Flag[]

export type ExportFlags = GlobalFlags & FlagValues<typeof exportFlags>

export const exportPlants = command({
  name: 'export',
  summary: 'write all plants to a file or to stdout',
  description: 'Write the plants as they are at one moment, in the order of their ids, while others go on writing.',
  flags: exportFlags,
  examples: ['plants export > plants.ndjson', 'plants export --out plants.csv.gz'],
  run: async ({ flags }, io) => (await import('./export.js')).exportPlants(flags(), io),
})

export const backup: CommandSpec = {
  name: 'backup',
  summary: 'copy the store into a file',
  description:
    'Copy the store, as it is at this moment, into a file, which is checked before it takes its place. Others may use the store meanwhile.',
  arguments: [{ term: '<file>', meaning: 'where to; an older backup there is replaced', values: 'file' }],
  examples: ['plants backup plants.bak', 'plants backup "plants-$(date +%F).bak" --store ./garden.db'],
  run: async ({ args: [file = ''], flags }, io) => (await import('./backup.js')).backup(file, flags(), io),
}

const restoreFlags = [{ term: '--force', meaning: 'also when there are plants in the store' }] as const satisfies readonly Flag[]

export type RestoreFlags = GlobalFlags & FlagValues<typeof restoreFlags>

export const restore = command({
  name: 'restore',
  summary: 'bring back a backup',
  description:
    'Put what is in a backup in the place of what is in the store, which is kept in a file beside it. Others may use the store meanwhile, and see it change at once.',
  arguments: [{ term: '<file>', meaning: 'what plants backup has made', values: 'file' }],
  flags: restoreFlags,
  examples: ['plants restore plants.bak --store ./new.db', 'plants restore plants.bak --force'],
  run: async ({ args: [file = ''], flags }, io) => (await import('./restore.js')).restore(file, flags(), io),
})
