import { commonFormats, outputFormats } from '../../config/option-values.js'
import { writeAnswer } from '../../output/output.js'
import { plantCount, type TextName } from '../../plant/plant.js'
import type { PlantRecord } from '../../plant/records.js'
import type { Io } from '../../platform/io.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { addFilters, type FilterOptions } from '../options.js'

export interface CountOptions extends FilterOptions {
  by?: TextName
}

export function defineCount(command: PlantsCommand, io: Io): void {
  command
    .description('Print the number of plants; with --output json or ndjson as a JSON number.')
    .choice('--by <field>', 'count the plants of each text, the most frequent first', [
      'name',
      'tag',
    ])
  addFilters(command)
    .addExamples(
      'plants count --tag shade',
      'plants count --by tag',
      'plants count --by name --output csv',
    )
    .handler((options: CountOptions) => count(options, io))
}

export async function count(options: CountOptions, io: Io): Promise<void> {
  const { tag, search, by } = options
  const context = await CommandContext.from(
    options,
    io,
    by === undefined ? commonFormats : outputFormats,
  )
  const store = await context.openStore()
  try {
    if (by === undefined) {
      const plants = (await store?.count({ tag, search })) ?? 0n
      return await writeAnswer(
        io,
        context.output === 'text' ? `${plantCount(plants)}\n` : `${plants}\n`,
      )
    }
    const printer = await context.plantPrinter<PlantRecord>([by, 'count'])
    for await (const page of store?.countBy(by, { tag, search }) ?? [])
      await printer.rows(page.map(({ text, count }) => ({ [by]: text, count })))
    await printer.end()
  } finally {
    await store?.close()
  }
}
