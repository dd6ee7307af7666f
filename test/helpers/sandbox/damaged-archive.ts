// Archives that say something false about their files, as damaged or hostile ones do.

/** The length of the header of a file in the directory of an archive (PKWARE's APPNOTE, 4.3.12). */
const headerLength = 46

/** Where the fields of that header are, and how many bytes they have. */
const headerFields = {
  flags: { offset: 8, length: 2 },
  checksum: { offset: 16, length: 4 },
  packedSize: { offset: 20, length: 4 },
  size: { offset: 24, length: 4 },
}

type HeaderFields = Partial<Record<keyof typeof headerFields, number>>

/** The flag of a file whose sizes stand behind its data, because it was streamed (4.4.4). */
export const streamedFlag = 8

/** Changes what the directory of an archive says about a file. */
export function changeHeader(archive: Buffer, path: string, fields: HeaderFields): Buffer {
  const changedArchive = Buffer.from(archive)
  // The name follows the header. The directory is at the end, after the files and their names.
  const header = changedArchive.lastIndexOf(path) - headerLength
  for (const [name, { offset, length }] of Object.entries(headerFields)) {
    const value = fields[name as keyof HeaderFields]
    if (value !== undefined) changedArchive.writeUIntLE(value, header + offset, length)
  }
  return changedArchive
}

/** Changes the name of a file into another one of the same length, but not what refers to it. */
export function renameFile(archive: Buffer, path: string, otherPath: string): Buffer {
  if (path.length !== otherPath.length) throw new RangeError('The names differ in length')
  return Buffer.from(archive.toString('latin1').replaceAll(path, otherPath), 'latin1')
}

/** An archive whose directory has one file several times, each time with these extra fields. */
export function buildRepeatedEntries(count: number, extraFields = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(headerLength)
  header.write('PK\x01\x02')
  const name = 'a'
  header.writeUInt16LE(name.length, 28)
  header.writeUInt16LE(extraFields.length, 30)
  const entry = Buffer.concat([header, Buffer.from(name), extraFields])
  const local = Buffer.alloc(30)
  local.write('PK\x03\x04')
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06')
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(count * entry.length, 12)
  end.writeUInt32LE(local.length, 16)
  return Buffer.concat([local, ...Array<Buffer>(count).fill(entry), end])
}

/**
 * A compound file, the format of documents before 2007 and of encrypted ones, with one stream: a
 * sector with the signature, then the first entry of the directory (MS-CFB, 2.2 and 2.6.1).
 */
export function buildCompoundFile(stream: string): Buffer {
  const signature = Buffer.from('\xd0\xcf\x11\xe0', 'latin1')
  const header = Buffer.concat([signature, Buffer.alloc(512 - signature.length)])
  const entry = Buffer.alloc(128)
  const nameLengthOffset = 64
  const typeOffset = 66
  const streamType = 2
  entry.write(stream, 'utf16le')
  entry.writeUInt16LE(Buffer.byteLength(`${stream}\0`, 'utf16le'), nameLengthOffset)
  entry[typeOffset] = streamType
  return Buffer.concat([header, entry])
}
