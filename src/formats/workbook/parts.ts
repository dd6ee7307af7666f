/*
 * A workbook is an archive (PKWARE's APPNOTE, 4.3.12) of parts in XML (ECMA-376, part 2). hucre
 * takes what is missing for empty, replaces bytes that are no UTF-8, and reads broken XML as far as
 * it goes. So parts are checked before, and named as it looks for them: spreadsheets compare names
 * without case, and `\` is `/`.
 */
import { posix } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import sax from 'sax'
import { inputError } from '../../errors.js'
import { checkSignal } from '../../platform/runtime.js'
import { maxUnpacked } from '../chunk.js'

/**
 * Returns the names of the sheets. Throws `input` for what unpacks to too much, and `Error` for
 * what is damaged.
 */
export async function checkParts(
  bytes: Buffer,
  name: string,
  signal: AbortSignal,
): Promise<string[]> {
  const entries = entriesIn(bytes, name)
  const workbook: WorkbookState = {
    name,
    paths: new Set(['[Content_Types].xml', '_rels/.rels']),
    sheets: [],
    sharedTexts: 0,
    openIndexes: 0,
    greatestIndex: -1,
  }
  for (const [path, entry] of entries) {
    if (!/^(?!customxml\/).*\.(?:xml|rels)$/.test(path)) continue
    await checkPart(path, textOf(bytes, entry), workbook, signal)
  }
  for (const path of workbook.paths) renameEntries(path, entries, bytes)
  const { sheets, sharedTexts, openIndexes, greatestIndex } = workbook
  if (openIndexes > 0 || greatestIndex >= sharedTexts)
    throw new Error('texts of its cells are missing')
  if (sheets.length === 0) throw new Error('it has no sheet')
  return sheets
}

/** What the parts that were checked so far say together. */
interface WorkbookState {
  name: string
  paths: Set<string>
  sheets: string[]
  sharedTexts: number
  /** How many cells still need the index of their shared text. */
  openIndexes: number
  greatestIndex: number
}

async function checkPart(
  path: string,
  text: string,
  workbook: WorkbookState,
  signal: AbortSignal,
): Promise<void> {
  const counts: Record<string, number> = {}
  let isShared = false
  let isIndex = false
  const noteIndex = (_: string, index = '-1') => {
    workbook.greatestIndex = Math.max(workbook.greatestIndex, Number(index))
    return ''
  }
  const parser = sax.parser(true, { position: false })
  parser.onerror = (error) => {
    throw error
  }
  parser.onopentag = (tag: sax.Tag) => {
    const element = tag.name.slice(tag.name.indexOf(':') + 1)
    countElement(element, counts, workbook.name)
    noteReferences(element, tag.attributes, path, workbook)
    if (element === 'c') isShared = tag.attributes['t'] === 's'
    workbook.openIndexes += Number(element === 'c' && isShared)
    isIndex = element === 'v' && isShared
  }
  parser.ontext = (content) => {
    if (!isIndex || !/^\d+$/.test(content)) return
    workbook.openIndexes -= 1
    noteIndex(content, content)
  }
  for (let at = 0; at < text.length; at += pieceLength) {
    const piece = text.slice(at, at + pieceLength)
    parser.write(piece.replace(plainCell, noteIndex))
    await checkSignal(signal)
  }
  parser.close()
  workbook.sharedTexts += counts['si'] ?? 0
}

function countElement(element: string, counts: Record<string, number>, name: string): void {
  const count = (counts[element] ?? 0) + 1
  counts[element] = count
  if (count > (most[element] ?? Infinity)) throw tooMuch(name)
  if (element === 'row') counts['c'] = 0
}

/** Notes the sheet that an element describes, and the part that it leads to. */
function noteReferences(
  element: string,
  { name: sheet, sheetId, Type: kind, Target: target }: sax.Tag['attributes'],
  path: string,
  { name, paths, sheets }: WorkbookState,
): void {
  if (element === 'sheet' && sheet && sheetId) sheets.push(sheet)
  if (isHidden.test(`${target} ${kind}`)) throw tooMuch(name)
  if (target) paths.add(posix.resolve('/', path, '../..', target).slice(1))
}

/** Names a part and the list of its relations as hucre looks for them. */
function renameEntries(path: string, entries: ReadonlyMap<string, number>, bytes: Buffer): void {
  for (const named of [path, path.replace(/[^/]*$/, '_rels/$&.rels')]) {
    const entry = entries.get(named.toLowerCase())
    if (entry !== undefined) bytes.write(named, entry + entrySize)
  }
}

/** Where they are in the directory of the archive, by their paths in lower case. */
function entriesIn(bytes: Buffer, name: string): Map<string, number> {
  const entries = new Map<string, number>()
  const end = bytes.lastIndexOf('PK\x05\x06', -endSize, 'latin1')
  if (end === -1) throw new Error('its end is missing')
  if (bytes.toString('latin1', end - 20, end - 16) === 'PK\x06\x07') throw tooMuch(name) // ZIP64
  let at = bytes.readUInt32LE(end + 16)
  let unpacked = 0
  while (bytes.toString('latin1', at, at + 4) === 'PK\x01\x02') {
    const size = bytes.readUInt32LE(at + 24)
    const lengths = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset))
    const pathEnd = at + entrySize + (lengths[0] ?? 0)
    const path = bytes
      .toString('utf8', at + entrySize, pathEnd)
      .replaceAll('\\', '/')
      .toLowerCase()
    const isTree = !/(?:^|\/)(?:worksheets|media)\/|pivotcacherecords/.test(path)
    unpacked += size
    const packed = bytes.readUInt32LE(at + 20)
    const isElsewhere = packed === 0 && (bytes.readUInt16LE(at + 8) & 8) !== 0
    // hucre would look elsewhere. An empty part has up to 2 bytes.
    if (isElsewhere || (size === 0 && packed > 2)) throw new Error(`the size of ${path} is wrong`)
    if (unpacked > maxUnpacked || (isTree && size > maxTree)) throw tooMuch(name)
    entries.set(path, at)
    at += lengths.reduce((sum, length) => sum + length, entrySize)
  }
  return entries
}

function textOf(bytes: Buffer, entry: number): string {
  const [packedSize = 0, size = 0, local = 0] = [20, 24, 42].map((offset) =>
    bytes.readUInt32LE(entry + offset),
  )
  const start = local + localSize + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28)
  const packed = bytes.subarray(start, start + packedSize)
  const isPacked = bytes.readUInt16LE(entry + 10) !== 0
  const content = isPacked ? inflateRawSync(packed, { maxOutputLength: size + 1 }) : packed
  return new TextDecoder('utf-8', { fatal: true }).decode(content)
}

/** Well-formed at first sight: without their check, an import takes up to 24 % less. */
const plainCell =
  /<c(?: [rs]="\w*")*(?: t="s"><v>(\d+)<\/v>|(?: t="(?!s")\w+")?>(?:<v>[^<&]*<\/v>|<is><t>[^<&]*<\/t><\/is>))<\/c>/g

/** Of a part that hucre reads, and the loop above does not. */
const isHidden = /(?<!\.xml) \S*(?:sheet|strings|styles)$/i

/** In a part, and cells in a row: more take gigabytes or minutes. */
const most: Record<string, number> = { sheet: 255, si: 1e6, xf: 1e5, row: 2 ** 20, c: 2 ** 14 }

const endSize = 22
const entrySize = 46
const localSize = 30
const pieceLength = 65_536
/** Of a part that hucre keeps as a tree, such as shared strings and styles. */
const maxTree = 50_331_648

export function tooMuch(name: string): Error {
  return inputError(`${name} unpacks to too much data`, 'Save the sheet as CSV, and import that')
}
