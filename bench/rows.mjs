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
  ndjson: (id, name, tag) => {
    const tagMember = tag === undefined ? '' : `,"tag":${JSON.stringify(tag)}`
    return `{"id":${id},"name":${JSON.stringify(name)}${tagMember}}\n`
  },
  csv: (id, name, tag) => `${id},${quote(name)},${tag === undefined ? '' : quote(tag)}\n`,
}

/**
 * Writes plants as collections have them: ids from the lowest int64 to the highest, in order; names
 * of several scripts and lengths; a third without a tag. They are the same every time, and in each
 * format.
 *
 * @param format has no heading in CSV, which neither sqlite3 nor COPY expects
 * @param {{ isShuffled?: boolean, shift?: bigint }} [options] if they are shuffled, successive ids
 *   are far apart; `shift` is added to each
 */
export async function writeRows(path, count, format, options) {
  const chunks = formatChunks(count, formats[format], options)
  await pipeline(Readable.from(chunks), createWriteStream(path))
}

/**
 * Writes the list of `writeRows` as it is a month later: of each 100 plants, one has another name,
 * behind each 1000th, there is a new one, and the last one is missing.
 *
 * @returns the number of plants
 */
export async function writeNextMonth(path, count, format) {
  const lines = function* () {
    for (let index = 0; index < count - 1; index += 1) {
      const [id, name, tag] = listFields(index, count)
      yield formats[format](id, index % 100 === 7 ? `${name} (renamed)` : name, tag)
      if (index % 1000 === 5) yield formats[format](id + 1n, `${name} (new)`, tag)
    }
  }
  await pipeline(Readable.from(lines()), createWriteStream(path))
  return count - 1 + Math.ceil((count - 6) / 1000)
}

/** @returns {[id: bigint, name: string, tag: string | undefined]} */
function listFields(index, count, shift = 0n) {
  const step = 2n ** 64n / BigInt(count)
  const id = BigInt.asIntN(64, BigInt(index) * step - 2n ** 63n + shift)
  const [mother, father] = [index, index * 7].map((at) => names[at % names.length])
  const name = `${mother} × ${father} ${(index * 7919) % 1_000_000}`
  return [id, name, tags[index % tags.length]]
}

function* formatChunks(count, formatLine, { isShuffled = false, shift = 0n } = {}) {
  let text = ''
  for (let row = 0; row < count; row += 1) {
    // The number is a prime, so each index comes once.
    const index = isShuffled ? (row * 7_368_787) % count : row
    text += formatLine(...listFields(index, count, shift))
    if (text.length < chunkLength) continue
    yield text
    text = ''
  }
  yield text
}

/**
 * Writes a list as people have them, as CSV: semicolons, more columns than a plant has, quotes
 * where they are not needed, and spaces behind texts.
 */
export async function writeTypedList(path, count) {
  const rows = function* () {
    yield 'Nr.;Botanischer Name;Standort;Stück;Bemerkung\r\n'
    for (let index = 0; index < count; index += 1) {
      const name = `${names[index % names.length]} ${(index * 7919) % 1_000_000} `
      const tag = tags[index % tags.length] ?? ''
      const [amount, note] = [index % 40, index % 3 === 0 ? quote('im Mai "geteilt"') : ' ']
      yield `${index + 1};${index % 4 === 0 ? quote(name) : name};${quote(tag)};${amount};${note}\r\n`
    }
  }
  await pipeline(Readable.from(rows()), createWriteStream(path))
}

/** These are words of several scripts. */
export const scripts = {
  English: ['Boston', 'fern', 'Alpine', 'rose', 'Meadow', 'yarrow', 'Summer'],
  umlauts: ['Färnkräuter', 'Röse', 'Älpler', 'Wüste', 'Gärten', 'Süßholz', 'Öhrchen'],
  Cyrillic: ['Папоротник', 'мох', 'Роза', 'дикий', 'Шалфей', 'луговой', 'Ёлка'],
  Chinese: ['蕨类植物', '苔藓', '玫瑰花', '鼠尾草', '高山', '三叶草', '紫菀'],
  emoji: ['🌿', '🌹', '👩‍🌾', '🌲', '🍀', '🌵', '🌼'],
}

/** Writes plants whose names are words of one script and a number, as NDJSON. */
export async function writeNames(path, count, script) {
  const words = scripts[script]
  const lines = function* () {
    for (let index = 0; index < count; index += 1) {
      const [first, second] = [index, index * 3].map((step) => words[step % words.length])
      yield formats.ndjson(index, `${first} ${second} ${(index * 7919) % 1_000_000}`)
    }
  }
  await pipeline(Readable.from(lines()), createWriteStream(path))
}

function quote(text) {
  return `"${text.replaceAll('"', '""')}"`
}
