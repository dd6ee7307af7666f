/* Encodes the plants of an export in its format. */
import { createInputError } from '../errors.js'
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
  if (format === 'xlsx') return encodeWorkbook(pages)
  const isTable = format === 'csv' || format === 'tsv'
  return encodePages(pages, createRecordWriter(format), isTable ? assertFitsTable : undefined)
}

async function* encodePages(
  pages: Pages,
  { add, end }: ReturnType<typeof createRecordWriter>,
  assertFits: ((plant: StoredPlant) => void) | undefined,
): AsyncGenerator<ExportBlock> {
  for await (const page of pages) {
    if (assertFits) page.forEach(assertFits)
    yield { length: page.length, content: add(page) }
  }
  yield { length: 0, content: end() }
}

/**
 * An import reads an empty cell as no name, and removes CR and LF at the ends of a cell.
 *
 * @throws {PlantsError} `input` for a plant that an import of the table would read differently
 */
function assertFitsTable({ id, name, tag = '' }: StoredPlant): void {
  const reason = findUnfitReason(name, tag)
  if (reason !== undefined)
    throw createInputError(
      `Plant ${id} does not fit in a table: ${reason}`,
      'Export to another format, such as .ndjson',
    )
}

function findUnfitReason(name: string, tag: string): string | undefined {
  if (name === '') return 'its name is empty'
  if (endsWithLineEnd.test(name)) return 'its name begins or ends with a line end'
  return endsWithLineEnd.test(tag) ? 'its tag begins or ends with a line end' : undefined
}

const endsWithLineEnd = /^[\r\n]|[\r\n]$/

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
