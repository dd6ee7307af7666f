import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

const names = [
  'Fern',
  'Boston fern',
  "Jacob's ladder",
  'Öküzgözü',
  'Rosa "Peace"',
  'Папоротник мужской',
  '蕨',
  'シダ植物',
  'نخيل التمر',
]
const tags = [undefined, 'shade', 'Alnus glutinosa, Ilex verticillata', '水生', 'тень', undefined]
const chunkLength = 1 << 20

const formats = {
  ndjson: (id, name, tag) =>
    `{"id":${id},"name":${JSON.stringify(name)}${tag === undefined ? '' : `,"tag":${JSON.stringify(tag)}`}}\n`,
  csv: (id, name, tag) => `${id},${quoted(name)},${tag === undefined ? '' : quoted(tag)}\n`,
}

/**
 * Writes plants as collections have them: ids from the lowest int64 to the highest, in order; names of several scripts
 * and lengths; a third without a tag. They are the same every time, and in each format.
 *
 * @param format of CSV, no heading is written, which neither sqlite3 nor COPY expects
 */
export async function writeRows(path, count, format) {
  await pipeline(Readable.from(chunksOf(count, formats[format])), createWriteStream(path))
}

function* chunksOf(count, lineOf) {
  const step = 2n ** 64n / BigInt(count)
  let text = ''
  for (let index = 0; index < count; index += 1) {
    const id = BigInt.asIntN(64, BigInt(index) * step - 2n ** 63n)
    const name = `${names[index % names.length]} × ${names[(index * 7) % names.length]} ${(index * 7919) % 1_000_000}`
    text += lineOf(id, name, tags[index % tags.length])
    if (text.length < chunkLength) continue
    yield text
    text = ''
  }
  yield text
}

function quoted(text) {
  return `"${text.replaceAll('"', '""')}"`
}
