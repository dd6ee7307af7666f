/*
 * Encodes the plants of an export in its format.
 *
 * A store that can write lines gives them as bytes (`readLines`), so that no plant becomes an
 * object in between. JSON and workbooks are not lines: their plants are read page by page.
 */
import { createLineFormat } from '../formats/lines.js'
import { createRecordWriter, type FileFormat } from '../formats/write.js'
import type { StoredPlant } from '../plant/plant.js'
import type { ReadQuery } from '../stores/query.js'
import type { PlantLines, Store } from '../stores/store.js'

type Pages = Iterable<StoredPlant[]> | AsyncIterable<StoredPlant[]>

/**
 * Yields the content of a file in blocks, with the number of plants in each block.
 *
 * @param store the store to read; undefined if there is none, and the file has no plants
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
  blocks: AsyncIterable<PlantLines>,
): AsyncGenerator<PlantLines> {
  let isFirst = true
  for await (const block of blocks) {
    // The header waits for the first plants: if they cannot be read, stdout stays empty.
    if (isFirst) yield { length: 0, content: header }
    isFirst = false
    yield block
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

/**
 * A workbook is compressed, so a block of it has no plants of its own. It counts those that were
 * read since the block before.
 */
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
    const block = { length, content }
    // More plants are read while the block is written, so the count starts again before that.
    length = 0
    yield block
  }
}
