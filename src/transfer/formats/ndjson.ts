import { parseJson } from '../../plant/json.js'
import { type Chunk, maxRecordBytes, type RecordRange, reason } from './chunk.js'
import type { Format } from './format.js'
import { LineReader } from './line-reader.js'
import { readPlantObject, unread } from './plant-object.js'

/** One JSON object per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. */
export const ndjson: Format = {
  detect: ({ bytes, start }) => {
    if (start === bytes.length || bytes[start] === brace) return true
    // The first line is invalid, but the second one is an object.
    const [, second = ''] = bytes
      .toString('utf8', start)
      .split('\n')
      .filter((line) => line.trim() !== '')
    return /^\{\s*"/.test(second)
  },
  read: (mapper) => new NdjsonReader(mapper),
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

  protected add(text: string, chunk: Chunk, range: RecordRange): void {
    if (/^[ \t\r]*$/.test(text)) return
    const parsed = parseJson(text, { idKey: this.mapper.idKey, isSuspect: chunk.isSuspect })
    if ('reason' in parsed) chunk.addInvalid(reason('malformed', `Not JSON: ${parsed.reason} at column ${parsed.column}`), range)
    else this.mapper.add(parsed.value, range, chunk)
  }
}

const [lineFeed, carriageReturn, brace] = [0x0a, 0x0d, 0x7b]
