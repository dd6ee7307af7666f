import { writeAnswer, writeRows } from '../../output/output.js'
import { plantCount, type TextName } from '../../plant/plant.js'
import type { PlantRecord } from '../../plant/records.js'
import type { Io } from '../../platform/io.js'
import { commonFormats, outputFormats } from '../../platform/values.js'
import { openExistingStore } from '../../stores/registry.js'
import type { PlantsCommand } from '../command.js'
import { resolveSettings } from '../context.js'
import { addFilters, type FilterOptions } from '../options.js'
import { plantTable } from '../plant-table.js'

export interface CountOptions extends FilterOptions {
  by?: TextName
}

export function defineCount(command: PlantsCommand, io: Io): void {
  command
    .description('Print the number of plants; with --output json or ndjson as a JSON number.')
    .choice('--by <field>', 'count the plants of each text, the most frequent first', ['name', 'tag'])
  addFilters(command)
    .addExamples('plants count --tag shade', 'plants count --by tag', 'plants count --by name --output csv')
    .handler((options: CountOptions) => count(options, io))
}

export async function count(options: CountOptions, io: Io): Promise<void> {
  const { tag, search, by } = options
  const settings = await resolveSettings(options, io, { formats: by === undefined ? commonFormats : outputFormats })
  const store = await openExistingStore(settings.store, settings.storeOptions)
  try {
    if (by === undefined) {
      const plants = (await store?.count({ tag, search })) ?? 0n
      return await writeAnswer(io, settings.output === 'text' ? `${plantCount(plants)}\n` : `${plants}\n`)
    }
    const fields = [by, 'count'] as const
    async function* rows(field: TextName): AsyncGenerator<PlantRecord[]> {
      for await (const page of store?.countBy(field, { tag, search }) ?? [])
        yield page.map(({ text, count }) => ({ [field]: text, count }))
    }
    await writeRows(io, settings, rows(by), { fields, text: () => plantTable(fields, settings, io) })
  } finally {
    await store?.close()
  }
}
