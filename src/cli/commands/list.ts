import { outputFormats } from '../../config/option-values.js'
import { fieldNames } from '../../plant/fields.js'
import type { Io } from '../../platform/io.js'
import type { PlantsCommand } from '../command.js'
import { readStoreContext } from '../context.js'
import { openStore } from '../open-store.js'
import { addQuery, type QueryOptions } from '../options.js'
import { runInPager } from '../pager.js'
import { createPlantPrinter } from '../print.js'

export function define(command: PlantsCommand): void {
  command.description(
    'List plants, as a table on a terminal and otherwise as NDJSON. By default, they are sorted by id.',
  )
  addQuery(command)
    .addExamples('plants list --search fern', 'plants list --desc --limit 10 --output csv')
    .handler((options: QueryOptions, io) =>
      runInPager(options, io, (pagedIo) => list(options, pagedIo)),
    )
}

async function list(options: QueryOptions, io: Io): Promise<void> {
  const context = await readStoreContext(options, io, outputFormats)
  const { tag, search, after, sort, desc, limit = Infinity } = options
  const isTable = context.output === 'text'
  const store = await openStore(context)
  try {
    // For a table, one plant more than the limit is read, to know whether there are more.
    const readLimit = limit === Infinity ? undefined : limit + Number(isTable)
    const query = { limit: readLimit, after, tag, search, sort, desc, inPages: sort === 'id' }
    const printer = await createPlantPrinter(context, fieldNames, Math.min(limit, 200))
    let readCount = 0
    let lastId: bigint | undefined
    for await (const page of store?.read(query) ?? []) {
      const plants = page.slice(0, limit - readCount)
      await printer.printRows(plants)
      readCount += page.length
      lastId = plants.at(-1)?.id ?? lastId
    }
    await printer.end()
    if (isTable && readCount > limit)
      await context.reporter.warn(
        sort === 'id' ? `For more plants: --after ${lastId}` : 'For more plants, leave out --limit',
      )
    else if (isTable && readCount === 0 && store)
      await context.reporter.warn(
        [tag, search, after].every((filter) => filter === undefined)
          ? 'No plants yet. Add some with: plants import FILE, or plants create'
          : 'No plants match. A tag is matched in its case, --search in any',
      )
  } finally {
    await store?.close()
  }
}
