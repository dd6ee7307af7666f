import { writeAnswer, writeRows } from '../../output/output.js'
import { type TextName, textFields, textsInWords } from '../../plant/fields.js'
import { plantCount } from '../../plant/plant.js'
import type { PlantRecord } from '../../plant/records.js'
import type { Io } from '../../platform/io.js'
import { commonFormats, outputFormats } from '../../platform/values.js'
import type { CountQuery, Store } from '../../stores/common/store.js'
import { openExistingStore } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { defineCommand, filterOptions } from '../define-command.js'
import { plantTable } from './list.js'

export const count = defineCommand({
  name: 'count',
  description: 'Print the number of plants; with --output json or ndjson as a JSON number.',
  options: [
    {
      flags: '--by <field>',
      description: `count the plants of each ${textsInWords}, the most frequent first`,
      choices: textFields.map(({ name }) => name),
    },
    ...filterOptions,
  ],
  formats: outputFormats,
  examples: ['plants count --tag shade', 'plants count --by tag', 'plants count --by name --output csv'],
  async run({ flags }, io) {
    const { tag, search, by } = flags
    const settings = await resolveSettings(flags, io, { formats: by === undefined ? commonFormats : outputFormats })
    const store = await openExistingStore(settings.store, settings.storeOptions)
    try {
      if (by !== undefined) return await printCounts(store, by, { tag, search }, settings, io)
      const plants = (await store?.count({ tag, search })) ?? 0n
      await writeAnswer(io, settings.output === 'text' ? `${plantCount(plants)}\n` : `${plants}\n`)
    } finally {
      await store?.close()
    }
  },
})

async function printCounts(store: Store | undefined, by: Text, query: CountQuery, settings: Settings, io: Io) {
  const fields = [by, 'count'] as const
  async function* rows(): AsyncGenerator<PlantRecord[]> {
    for await (const page of store?.countBy(by, query) ?? [])
      yield page.map(({ text, count }) => ({ [by]: text, count }))
  }
  await writeRows(io, settings, rows(), { fields, text: () => plantTable(fields, settings, io) })
}

type Text = TextName
