const mark = Buffer.from('d9d505f920a163d7', 'hex')

/**
 * A rollback journal with all pages of a database (https://sqlite.org/fileformat2.html#the_rollback_journal): beside
 * another database, it is hot, and turns that one into this one.
 *
 * @param superJournal the file that SQLite deletes when it has rolled back
 */
export function journalOf(database: Buffer, superJournal?: string): Buffer {
  const size = database.readUInt16BE(16)
  const count = database.length / size
  const header = Buffer.alloc(512)
  Buffer.concat([mark, numbers(count, 0, count, 512, size)]).copy(header)
  const records = Array.from({ length: count }, (_, index) => {
    const page = database.subarray(index * size, (index + 1) * size)
    return Buffer.concat([numbers(index + 1), page, numbers(checksumOf(page))])
  })
  if (superJournal === undefined) return Buffer.concat([header, ...records])
  const name = Buffer.from(superJournal)
  const nameSum = name.reduce((total, byte) => total + byte, 0)
  return Buffer.concat([
    header,
    ...records,
    numbers(2 ** 30 / size + 1),
    name,
    numbers(name.length, nameSum),
    mark,
  ])
}

function checksumOf(page: Buffer): number {
  let sum = 0
  for (let index = page.length - 200; index > 0; index -= 200) sum += page.readUInt8(index)
  return sum
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index)
  return bytes
}
