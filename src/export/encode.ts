import { createLineFormat } from '../formats/lines.js'
import { createRecordWriter, type FileFormat } from '../formats/write.js'
import type { StoredPlant } from '../plant/plant.js'
import type { ReadQuery } from '../stores/query.js'
import type { PlantLines, Store } from '../stores/store.js'

type Pages = Iterable<StoredPlant[]> | AsyncIterable<StoredPlant[]>

/**
 * Yields the parts of a file, and how many plants each of them has.
 *
 * @param store undefined for a file without plants
 */
export function encodePlants(
  store: Pick<Store, 'read' | 'readLines'> | undefined,
  query: ReadQuery,
  format: FileFormat,
): AsyncGenerator<PlantLines> {
  const lineFormat = format === 'xlsx' ? undefined : createLineFormat(format)
  if (lineFormat && store?.readLines)
    return addHeader(lineFormat.header, store.readLines(query, lineFormat))
  const pages = store?.read(query) ?? []
  return format === 'xlsx' ? encodeWorkbook(pages) : encodePages(pages, createRecordWriter(format))
}

async function* addHeader(
  header: string,
  parts: AsyncIterable<PlantLines>,
): AsyncGenerator<PlantLines> {
  let isFirst = true
  for await (const part of parts) {
    // What fails before the first plant leaves stdout empty.
    if (isFirst) yield { length: 0, content: header }
    isFirst = false
    yield part
  }
  if (isFirst) yield { length: 0, content: header }
}

async function* encodePages(
  pages: Pages,
  { add, end }: ReturnType<typeof createRecordWriter>,
): AsyncGenerator<PlantLines> {
  for await (const page of pages) yield { length: page.length, content: add(page) }
  yield { length: 0, content: end() }
}

/** A part of a workbook has the plants that were read for it. */
async function* encodeWorkbook(pages: Pages): AsyncGenerator<PlantLines> {
  const { writeWorkbook } = await import('./workbook.js')
  let length = 0
  async function* countPlants(): AsyncGenerator<StoredPlant[]> {
    for await (const page of pages) {
      length += page.length
      yield page
    }
  }
  for await (const content of writeWorkbook(countPlants())) {
    yield { length, content }
    length = 0
  }
}
