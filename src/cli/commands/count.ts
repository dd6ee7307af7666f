import { writeAnswer, writeRows } from '../../output/output.js'
import { textFields, textsInWords } from '../../plant/fields.js'
import { plantCount } from '../../plant/plant.js'
import type { PlantRecord } from '../../plant/records.js'
import { malformed } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { commonFormats, outputFormats, parseCount } from '../../platform/values.js'
import type { CountByQuery, ReadableStore } from '../../stores/common/store.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { defineCommand, filterOptions } from '../define-command.js'
import { plantTable, rowsOf } from './list.js'

export const count = defineCommand({
  name: 'count',
  description: 'Print the number of plants; with --output json or ndjson as a JSON number.',
  options: [
    {
      flags: '--by <field>',
      description: `count the plants of each ${textsInWords}, the most frequent first`,
      choices: textFields.map(({ name }) => name),
    },
    { flags: '--min <count>', description: 'with --by: only what at least this many plants have', parse: parseCount },
    { flags: '--limit <count>', description: 'with --by: at most this many rows', parse: parseCount },
    ...filterOptions,
  ],
  formats: outputFormats,
  examples: ['plants count --tag shade', 'plants count --by tag', 'plants count --by name --min 2'],
  async run({ flags }, io) {
    const { tag, search, by, min, limit } = flags
    if (by === undefined && (min ?? limit) !== undefined)
      throw malformed(`${min === undefined ? '--limit' : '--min'} needs --by`, 'For example: plants count --by name')
    const settings = await resolveSettings(flags, io, { formats: by === undefined ? commonFormats : outputFormats })
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      if (by !== undefined) return await printCounts(store, { tag, search, by, min, limit }, settings, io)
      const plants = (await store?.count({ tag, search })) ?? 0n
      await writeAnswer(io, settings.output === 'text' ? `${plantCount(plants)}\n` : `${plants}\n`)
    } finally {
      await store?.close()
    }
  },
})

async function printCounts(store: ReadableStore | undefined, query: CountByQuery, settings: Settings, io: Io) {
  const fields = [query.by, 'count'] as const
  const rows = store ? rowsOf<PlantRecord>(store.countBy(query)) : []
  await writeRows(io, settings, rows, { fields, text: () => plantTable(fields, settings, io) })
}
