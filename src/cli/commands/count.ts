import type { PlantRecord } from '../../formats/write.js'
import { writeAnswer } from '../../output/output.js'
import { foldText } from '../../plant/folding.js'
import { plantCount, type TextName } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { addCount, type CountQuery, type TextCounts } from '../../stores/query.js'
import type { Store } from '../../stores/store.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { addFilters, type FilterOptions } from '../options.js'

interface CountOptions extends FilterOptions {
  by?: TextName
}

export function define(command: PlantsCommand): void {
  command
    .description('Print the number of plants; with --output json or ndjson as a JSON number.')
    .choice('--by <field>', 'count the plants of each text, the most frequent first', [
      'name',
      'tag',
    ])
  addFilters(command)
    .addExamples('plants count --tag shade', 'plants count --by name --output csv')
    .handler(count)
}

async function count(options: CountOptions, io: Io): Promise<void> {
  const { tag, search, by } = options
  const context = by
    ? await CommandContext.forPlants(options, io)
    : await CommandContext.from(options, io)
  const store = await context.openStore()
  try {
    if (by === undefined) {
      const plants = (await store?.count({ tag, search })) ?? 0n
      return await writeAnswer(io, `${context.output === 'text' ? plantCount(plants) : plants}\n`)
    }
    const printer = await context.plantPrinter<PlantRecord>([by, 'count'])
    // A store counts in steps, between which a signal arrives, and then ends the count.
    const query = { tag, search, signal: io.handleSignals() }
    await printer.all([await countBy(by, query, context.output === 'text', store)])
  } finally {
    await store?.close()
  }
}

/** Returns a record for each text, the most frequent first. */
async function countBy(
  by: TextName,
  query: CountQuery,
  isTable: boolean,
  store: Store | undefined,
): Promise<PlantRecord[]> {
  const none = isTable ? '(none)' : undefined
  const counts = store ? await findCounts(store, by, query) : []
  const rows = Array.from(counts, ([text, count]) => {
    const isMissing = text === undefined
    return { text, count, isMissing, folded: Buffer.from(isMissing ? '' : foldText(text)) }
  })
  // Equal counts are in the order of `list --sort`.
  rows.sort(
    (one, other) =>
      Number(other.count - one.count) ||
      Number(one.isMissing) - Number(other.isMissing) ||
      Buffer.compare(one.folded, other.folded) ||
      Buffer.compare(Buffer.from(one.text ?? ''), Buffer.from(other.text ?? '')),
  )
  return rows.map(({ text = none, count }) => ({ [by]: text, count }))
}

/** A direct store counts itself. A service has no such operation, so its plants are read. */
async function findCounts(store: Store, by: TextName, query: CountQuery): Promise<TextCounts> {
  if (store.countBy) return store.countBy(by, query)
  const counts: TextCounts = new Map()
  for await (const plants of store.read(query))
    for (const { [by]: text } of plants) addCount(counts, text, 1n)
  return counts
}
