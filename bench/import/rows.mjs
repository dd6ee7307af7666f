import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

const names = [
  'Fern',
  'Boston fern',
  'Black alder',
  "Jacob's ladder",
  'Öküzgözü',
  'Angélique de Bohême',
  'Rosa "Peace"',
]
  .concat([
    'Черника',
    'Папоротник мужской',
    'Материнка звичайна',
    '蕨',
    '荷叶铁线蕨',
    '櫻花',
    'シダ植物',
    'ヤマザクラ',
    'ひまわり',
  ])
  .concat([
    'سرخس',
    'نخيل التمر',
    'زنبق الوادي',
    'Adiantum capillus-veneris',
    'Nephrolepis exaltata',
    'Dyer’s greenweed 🌿',
  ])
const tags = [
  'shade',
  'sun',
  'Alnus',
  'Alnus glutinosa, Ilex verticillata',
  'Vaccinium myrtillus',
  '水生',
  'тень',
  'ظل',
  '日陰',
]
const lowest = -(2n ** 63n)
const chunkLength = 1 << 20

/** The ids that a number of plants have. */
const orders = {
  /** from the lowest int64 to the highest, with uneven gaps */
  *ordered(count, random) {
    const step = 2n ** 64n / BigInt(count)
    for (let index = 0n; index < count; index += 1n) yield lowest + index * step + BigInt(random(2 ** 32))
  },
  /** Knuth's 64-bit congruential generator: no id comes twice before all have come */
  *random(count) {
    let id = 1n
    for (let index = 0; index < count; index += 1) {
      id = BigInt.asIntN(64, id * 6364136223846793005n + 1442695040888963407n)
      yield id
    }
  },
}

const formats = {
  ndjson: (id, name, tag) =>
    `{"id":${id},"name":${JSON.stringify(name)}${tag === undefined ? '' : `,"tag":${JSON.stringify(tag)}`}}\n`,
  tsv: (id, name, tag) => `${id}\t${field(name)}\t${tag === undefined ? '\\N' : field(tag)}\n`,
  csv: (id, name, tag) => `${id},${cell(name)},${tag === undefined ? '' : cell(tag)}\n`,
}

/**
 * Writes plants of the shape that collections have: int64 ids, names of several scripts and lengths, a third without a
 * tag. They are the same every time, and in each format. Of `count` it writes `most`, behind the first `from`.
 */
export async function writeRows(path, { count, order, format, from = 0, most = count }) {
  await pipeline(Readable.from(chunks({ count, from, most }, orders[order], formats[format])), createWriteStream(path))
}

function* chunks({ count, from, most }, order, toLine) {
  const random = randomNumbers()
  const pick = (values) => values[random(values.length)]
  let text = ''
  let index = -1
  for (const id of order(count, random)) {
    index += 1
    if (index < from) continue
    if (index >= from + most) break
    const name = Array.from({ length: 1 + random(2) }, () => pick(names)).join(' × ')
    text += toLine(id, `${name} ${random(1_000_000)}`, random(3) === 0 ? undefined : pick(tags))
    if (text.length < chunkLength) continue
    yield text
    text = ''
  }
  yield text
}

/** Whole numbers below a limit, the same every time. */
function randomNumbers() {
  let state = 12345
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

/** As COPY of PostgreSQL has it. */
function field(text) {
  return text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n')
}

function cell(text) {
  return `"${text.replaceAll('"', '""')}"`
}
