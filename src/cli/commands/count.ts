import { commonFormats, outputFormats } from '../../config/option-values.js'
import { writeAnswer } from '../../output/output.js'
import { plantCount, type StoredPlant, type TextName } from '../../plant/plant.js'
import type { PlantRecord } from '../../plant/records.js'
import type { Io } from '../../platform/io.js'
import { foldText } from '../../stores/common/search.js'
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
    const counts = store ? await countTexts(store.read({ tag, search }), by) : []
    const printer = await context.plantPrinter<PlantRecord>([by, 'count'])
    await printer.rows(counts.map(({ text, count }) => ({ [by]: text, count: BigInt(count) })))
    await printer.end()
  } finally {
    await store?.close()
  }
}

interface TextCount {
  /** Undefined for plants without one. */
  text: string | undefined
  count: number
}

async function countTexts(pages: AsyncIterable<StoredPlant[]>, by: TextName): Promise<TextCount[]> {
  const counts = new Map<string | undefined, number>()
  for await (const plants of pages)
    for (const { [by]: text } of plants) counts.set(text, (counts.get(text) ?? 0) + 1)
  return Array.from(counts, ([text, count]) => ({ text, count })).toSorted(byCount)
}

/** The most frequent first, then as `list --sort` has them, plants without a text last. */
function byCount(one: TextCount, other: TextCount): number {
  if (one.count !== other.count) return other.count - one.count
  if (one.text === undefined) return 1
  if (other.text === undefined) return -1
  return (
    compareCodePoints(foldText(one.text), foldText(other.text)) ||
    compareCodePoints(one.text, other.text)
  )
}

/** In UTF-8, as the databases do: JavaScript compares code units of UTF-16. */
function compareCodePoints(one: string, other: string): number {
  return Buffer.from(one).compare(Buffer.from(other))
}
