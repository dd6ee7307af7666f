import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../plant/json.js'
import { type Chunk, maxRecordBytes, notJson, notUtf8, type RecordRange } from './chunk.js'
import { type Format, type Head, isSpace } from './format.js'
import { LineReader, type Rows } from './line-reader.js'
import { readPlantObject, unread } from './plant-object.js'

/** One JSON object per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. */
export const ndjson: Format = {
  detect: ({ bytes, start }: Head) => {
    if (start === bytes.length || bytes[start] === brace) return true
    // The first line is invalid, but the second one is an object.
    const [, second = ''] = bytes
      .toString('utf8', start)
      .split('\n')
      .filter((line) => line.trim() !== '')
    return /^\{\s*"/.test(second)
  },
  read: (mapper) => new NdjsonReader(mapper),
  write: { record: 'json', head: '', between: '\n', foot: '' },
}

class NdjsonReader extends LineReader {
  protected addFast(chunk: Chunk, start: number, line: number): number {
    const { bytes } = chunk
    const end = readPlantObject(chunk, start)
    if (end === unread) return unread
    const feed = bytes[end] === carriageReturn ? end + 1 : end
    if (bytes[feed] === lineFeed && feed < start + maxRecordBytes) {
      chunk.setRange(start, feed + 1, line)
      return feed + 1
    }
    chunk.rows.length -= 1
    return unread
  }

  protected add({ textEnd, error }: Rows, chunk: Chunk, range: RecordRange): void {
    const content = chunk.bytes.subarray(range.start, textEnd)
    const invalid = error ?? (isUtf8(content) ? undefined : notUtf8)
    if (invalid) chunk.addInvalid(invalid, range)
    else if (!content.every((byte) => isSpace(byte))) {
      const parsed = parseJson(content.toString(), { idKey: this.mapper.idKey, isSuspect: chunk.isSuspect })
      if ('value' in parsed) this.mapper.add(parsed.value, range, chunk)
      else chunk.addInvalid(notJson(`${parsed.reason} at column ${parsed.column}`), range)
    }
  }
}

const [lineFeed, carriageReturn, brace] = [0x0a, 0x0d, 0x7b]
