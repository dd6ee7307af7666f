import { outputFormats } from '../../config/option-values.js'
import type { PlantRecord } from '../../formats/write.js'
import { writeStdout } from '../../output/output.js'
import type { StringFieldName } from '../../plant/fields.js'
import { foldString, toSortKey } from '../../plant/folding.js'
import { formatPlantCount } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { addCount, type CountQuery, type FieldCounts } from '../../stores/query.js'
import type { Store } from '../../stores/store.js'
import type { PlantsCommand } from '../command.js'
import { readStoreContext } from '../context.js'
import { openStore } from '../open-store.js'
import { addFilters, type FilterOptions } from '../options.js'
import { createPlantPrinter } from '../print.js'

interface CountOptions extends FilterOptions {
  by?: StringFieldName
}

export function define(command: PlantsCommand): void {
  command
    .description('Print the number of plants, as plain text or as a JSON number.')
    .choice('--by <field>', 'count the plants for each value of a field, most frequent first', [
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
    ? await readStoreContext(options, io, outputFormats)
    : await readStoreContext(options, io)
  const store = await openStore(context)
  try {
    if (by === undefined) {
      const plants = (await store?.count({ tag, search })) ?? 0n
      return await writeStdout(
        io,
        `${context.output === 'text' ? formatPlantCount(plants) : plants}\n`,
      )
    }
    const printer = await createPlantPrinter<PlantRecord>(context, [by, 'count'])
    // A store counts in steps. A signal that arrives between two of them ends the count.
    const query = { tag, search, signal: io.getStopSignal() }
    const counts: FieldCounts = store ? await findCounts(store, by, query) : new Map()
    const noText = context.output === 'text' ? '(none)' : undefined
    const toRecord = ({ text = noText, count }: Group): PlantRecord => ({ [by]: text, count })
    await printer.printAll([sortGroups(counts).map(toRecord)])
  } finally {
    await store?.close()
  }
}

/** The plants with the same name or tag. `text` is undefined for plants without a tag. */
interface Group {
  text: string | undefined
  count: bigint
  /** Names with the same key differ only in case and accents, such as Fern and fern. */
  sortKey: string
}

/** Sorts by frequency, most frequent first, and then as `list --sort` does. */
function sortGroups(counts: FieldCounts): Group[] {
  const groups = Array.from(counts, ([text, count]) => {
    return { text, count, sortKey: toSortKey(foldString(text ?? '')) }
  })
  return groups.sort(compareGroups)
}

function compareGroups(left: Group, right: Group): number {
  if (left.count !== right.count) return left.count > right.count ? -1 : 1
  if (left.text === undefined) return 1
  if (right.text === undefined) return -1
  if (left.sortKey !== right.sortKey) return left.sortKey < right.sortKey ? -1 : 1
  return toSortKey(left.text) < toSortKey(right.text) ? -1 : 1
}

/**
 * Counts the plants for each value of a field. A direct store counts them itself. The API of a
 * service has no such operation, so all plants are read.
 */
async function findCounts(
  store: Store,
  by: StringFieldName,
  query: CountQuery,
): Promise<FieldCounts> {
  if (store.countBy) return store.countBy(by, query)
  const counts: FieldCounts = new Map()
  for await (const plants of store.read(query))
    for (const { [by]: text } of plants) addCount(counts, text, 1n)
  return counts
}
