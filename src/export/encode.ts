/* Encodes the plants of an export in its format. */
import { createInputError } from '../errors.js'
import { createRecordWriter, type FileFormat } from '../formats/write.js'
import type { StoredPlant } from '../plant/plant.js'

/** Yields the content of a file in blocks. */
export async function* encodePlants(
  pages: AsyncIterable<StoredPlant[]>,
  format: FileFormat,
): AsyncGenerator<string | Uint8Array> {
  if (format === 'xlsx') {
    const { writeWorkbook } = await import('./workbook.js')
    return yield* writeWorkbook(pages)
  }
  const isTable = format === 'csv' || format === 'tsv'
  const { add, end } = createRecordWriter(format)
  for await (const page of pages) {
    if (isTable) page.forEach(assertFitsTable)
    yield add(page)
  }
  yield end()
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
