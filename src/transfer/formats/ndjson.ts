import { problem } from '../../stores/common/change.js'
import { Chunk, isTooLarge, maxRecordBytes, recordTooLarge } from './chunk.js'
import { readLines } from './lines.js'

/** One JSON value per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. */
export async function* readNdjson(blocks: AsyncIterable<Buffer>): AsyncGenerator<Chunk> {
  for await (const { first, texts, invalid } of readLines(blocks, { maxBytes: maxRecordBytes })) {
    const chunk = new Chunk()
    for (const [index, text] of texts.entries()) {
      const line = first + index
      if (isTooLarge(text)) chunk.add('', line, recordTooLarge)
      else if (invalid.has(index)) chunk.add(text, line, notUtf8)
      else if (text.charCodeAt(0) > 0x20 || !/^[ \t\r]*$/.test(text))
        chunk.add(text.endsWith('\r') ? text.slice(0, -1) : text, line)
    }
    if (chunk.records.length > 0) yield chunk
  }
}

const notUtf8 = problem('malformed', 'Not UTF-8. If the input has another encoding, name it with --encoding')
