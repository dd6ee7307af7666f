/*
 * Writes the plants of an export to a file, packed if its name ends in `.gz`.
 *
 * A reader of the file never sees a part of an export: it is written to a temporary file, which
 * then gets the name. What is not an ordinary file, such as /dev/stdout or a named pipe, cannot be
 * replaced like this, and is written in place.
 */
import { constants, createWriteStream, type WriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { createUsageError, getSystemCode } from '../errors.js'
import { type FileFormat, type FormatName, findNamedFormat } from '../formats/write.js'
import {
  AtomicFile,
  assertOwnFile,
  isWrittenInPlace,
  toWriteError,
} from '../platform/atomic-file.js'
import { shorten } from '../platform/escape.js'
import { parseFileEnding, spreadsheetEndings } from '../platform/file-names.js'
import { resolveLink, statIfExists } from '../platform/files.js'

/**
 * Chooses the format by the ending of the file name, unless one is chosen: `plants.csv.gz` is CSV.
 *
 * @throws {PlantsError} `usage` if the name has no known ending
 */
export function chooseFileFormat(name: string, chosen: FormatName | undefined): FileFormat {
  const format = chosen ?? findFileFormat(name)
  if (format !== undefined) return format
  const { stem, ending } = parseFileEnding(name)
  throw createUsageError(
    `The file name ${JSON.stringify(shorten(name))} does not show the format`,
    spreadsheetEndings.includes(ending)
      ? `For a workbook, use the name ${JSON.stringify(shorten(`${stem}.xlsx`))}`
      : 'End the name in .csv, .tsv, .json, .ndjson or .xlsx, or choose a format: --output csv',
  )
}

/** Finds the format that the ending of a file name means. */
function findFileFormat(name: string): FileFormat | undefined {
  const { ending, isGzip } = parseFileEnding(name)
  return ending === 'xlsx' && !isGzip ? 'xlsx' : findNamedFormat(name)
}

const otherFileHint = 'Choose another file'

/** Writes a file as a whole or not at all, and returns how many bytes it has. */
export async function exportFile(
  path: string,
  content: AsyncIterable<string | Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  let file: AtomicFile | undefined
  let target = path
  const encoded = Readable.from(content)
  try {
    const oldStats = statIfExists(path)
    target = resolveLink(path)
    let out: WriteStream
    if (isWrittenInPlace(oldStats)) out = await openInPlace(path)
    else {
      if (oldStats) assertOwnFile(path, oldStats, otherFileHint)
      file = new AtomicFile(target, { followsUmask: !oldStats })
      out = createWriteStream(file.path, { flags: 'r+' })
    }
    const packing = parseFileEnding(path).isGzip ? [createGzip()] : []
    await pipeline([encoded, ...packing, out], { signal })
    signal.throwIfAborted()
    file?.commit(oldStats)
    return out.bytesWritten
  } catch (error) {
    signal.throwIfAborted()
    // The reader of a pipe wants no more. That is not a failure to write.
    if (getSystemCode(error) === 'EPIPE') throw error
    throw toWriteError(path, target, error, otherFileHint)
  } finally {
    file?.discard()
  }
}

/**
 * Opens a device or a pipe, which waits for the reader of a pipe. The owner is asked of what was
 * opened, because another user may have put a pipe of his own at the path in the meantime.
 *
 * @throws {PlantsError} `usage` for a device or a pipe of another user, who could read the plants
 */
async function openInPlace(path: string): Promise<WriteStream> {
  const handle = await open(path, constants.O_WRONLY | constants.O_APPEND)
  try {
    assertOwnFile(path, await handle.stat(), otherFileHint)
  } catch (error) {
    await handle.close()
    throw error
  }
  return handle.createWriteStream()
}
