import { fieldNames } from '../../plant/fields.js'
import type { Io } from '../../platform/io.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { addQuery, type QueryOptions } from '../options.js'
import { runInPager } from '../pager.js'

export function define(command: PlantsCommand): void {
  command.description(
    'List plants in the order of their ids: as a table on a terminal, otherwise as NDJSON.',
  )
  addQuery(command)
    .addExamples(
      'plants list --desc --limit 10',
      'plants list --search fern --sort name --output csv',
    )
    .handler((options: QueryOptions, io) =>
      runInPager(options, io, (shown) => list(options, shown)),
    )
}

async function list(options: QueryOptions, io: Io): Promise<void> {
  const context = await CommandContext.forPlants(options, io)
  const { tag, search, after, sort, desc, limit = Infinity } = options
  const isTable = context.output === 'text'
  const store = await context.openStore()
  try {
    // A table reads one plant beyond its limit, to know whether there are more.
    const read = limit === Infinity ? undefined : limit + Number(isTable)
    const query = { limit: read, after, tag, search, sort, desc, inPages: sort === 'id' }
    const printer = await context.createPlantPrinter(fieldNames, Math.min(limit, 200))
    let count = 0
    let last: bigint | undefined
    for await (const page of store?.read(query) ?? []) {
      const plants = page.slice(0, limit - count)
      await printer.printRows(plants)
      count += page.length
      last = plants.at(-1)?.id ?? last
    }
    await printer.end()
    if (!store) await context.warn(context.describeMissingStore())
    else if (isTable && count > limit)
      await context.warn(
        sort === 'id' ? `For more plants: --after ${last}` : 'For more plants, leave out --limit',
      )
    else if (isTable && count === 0)
      await context.warn(
        tag === undefined && search === undefined
          ? 'No plants'
          : 'No plants match. A tag is matched in its case, --search in any',
      )
  } finally {
    await store?.close()
  }
}
