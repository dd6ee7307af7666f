/* Encodes the plants of an export in its format. */
import { createRecordWriter, type FileFormat } from '../formats/write.js'
import type { StoredPlant } from '../plant/plant.js'
import type { ReadQuery } from '../stores/query.js'
import type { Store } from '../stores/store.js'

type Pages = Iterable<StoredPlant[]> | AsyncIterable<StoredPlant[]>

/** A part of the content of a file. */
export interface ExportBlock {
  /** The number of plants that were read for it. */
  length: number
  content: string | Uint8Array
}

/**
 * Yields the content of a file in blocks, with the number of plants in each block.
 *
 * @param store the store to read; undefined if there is none, and the file has no plants
 */
export function encodePlants(
  store: Pick<Store, 'read'> | undefined,
  query: ReadQuery,
  format: FileFormat,
): AsyncGenerator<ExportBlock> {
  const pages = store?.read(query) ?? []
  return format === 'xlsx' ? encodeWorkbook(pages) : encodePages(pages, createRecordWriter(format))
}

async function* encodePages(
  pages: Pages,
  { add, end }: ReturnType<typeof createRecordWriter>,
): AsyncGenerator<ExportBlock> {
  for await (const page of pages) yield { length: page.length, content: add(page) }
  yield { length: 0, content: end() }
}

/**
 * A workbook is compressed, so a block of it has no plants of its own. It counts those that were
 * read since the block before.
 */
async function* encodeWorkbook(pages: Pages): AsyncGenerator<ExportBlock> {
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
