import { inflateRawSync } from 'node:zlib'
import { inputError, must, type PlantsError } from '../../platform/errors.js'
import { incomplete } from './chunk.js'
import { refuseArchive } from './signatures.js'

/**
 * Checks what the central directory of a workbook says (PKWARE's APPNOTE, 4.3.12), because hucre unpacks no more than
 * that, but takes a file without a size for empty, or for as large as the file says itself, and does not compare a
 * checksum that is 0.
 *
 * @returns the styles, if they are there and can be had
 */
export function checkArchive(bytes: Buffer, source: string): string | undefined {
  try {
    return stylesOf(bytes, entriesOf(bytes, source))
  } catch (error) {
    throw error instanceof RangeError
      ? damaged(source, new Error('its list of parts is wrong'))
      : error
  }
}

interface Entry {
  name: string
  method: number
  packed: number
  offset: number
}

function entriesOf(bytes: Buffer, source: string): Entry[] {
  const entries: Entry[] = []
  const end = bytes.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  if (end === -1 || end + endSize > bytes.length) throw incomplete(source, 'save it again as .xlsx')
  if (bytes.readUInt16LE(end + 10) === 0xffff || bytes.readUInt32LE(end + 12) === 0xffffffff)
    throw damaged(source, new Error('its list of parts is that of a larger archive'))
  let at = bytes.readUInt32LE(end + 16)
  let unpacked = 0
  const isEntry = () => bytes.toString('latin1', at, at + 4) === 'PK\x01\x02'
  if (!isEntry()) throw damaged(source, new Error('its list of parts is not where its end says'))
  while (isEntry()) {
    const [flags, method] = [8, 10].map((offset) => bytes.readUInt16LE(at + offset))
    const [crc, packed, size] = [16, 20, 24].map((offset) => bytes.readUInt32LE(at + offset))
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) =>
      bytes.readUInt16LE(at + offset),
    )
    const name = bytes.toString('utf8', at + 46, at + 46 + must(nameLength))
    unpacked += must(size)
    if (unpacked > maxUnpacked) throw tooLarge(source)
    if (must(size) > (largeParts.test(name) ? maxSheet : maxKept)) throw tooLarge(source)
    const isHidden =
      packed === 0 && method === deflated && (must(flags) & 8) !== 0 && !name.endsWith('/')
    if ((size === 0 && must(packed) > 2) || (crc === 0 && must(size) > 0) || isHidden)
      throw damaged(source, new Error(`${name} has another size or checksum than the archive says`))
    entries.push({
      name,
      method: must(method),
      packed: must(packed),
      offset: bytes.readUInt32LE(at + 42),
    })
    at += 46 + must(nameLength) + must(extra) + must(comment)
  }
  const names = entries.map(({ name }) => name)
  refuseArchive(names, source)
  return entries
}

const endSize = 22
const deflated = 8
/** Parts that hucre does not keep as a tree. */
const largeParts = /(?:^|\/)(?:worksheets|media)\/|pivotCacheRecords/
const maxUnpacked = 536_870_912
const maxSheet = 201_326_592
const maxKept = 50_331_648

function stylesOf(bytes: Buffer, entries: readonly Entry[]): string | undefined {
  let text = ''
  for (const { method, packed, offset } of entries.filter(({ name }) =>
    /styles\.xml$/i.test(name),
  )) {
    const start = offset + 30 + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28)
    const part = bytes.subarray(start, start + packed)
    try {
      text += (
        method === deflated ? inflateRawSync(part, { maxOutputLength: maxStyles }) : part
      ).toString()
    } catch {
      return undefined // hucre says what is wrong
    }
  }
  return text
}

const maxStyles = 4_194_304

export function tooLarge(source: string): PlantsError {
  return inputError(`${source} unpacks to too much data`, 'Save the sheet as CSV, and import that')
}

export function damaged(what: string, error: Error): PlantsError {
  return inputError(
    `${what} is damaged: ${error.message}`,
    'Save it again as .xlsx, or as CSV',
    error,
  )
}
