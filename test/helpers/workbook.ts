import { constants, crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

import { must } from '../../src/platform/errors.js'

const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

export interface Parts {
  /** the content of `sheetData` by name, or a packed worksheet; a chart has none */
  sheets?: Record<string, string | Packed | undefined>
  sharedStrings?: string
  styles?: string
  /** the content of `workbook`, before its sheets */
  properties?: string
  /** unpacked size that the archive says the first sheet has */
  declared?: number
  /** whether the files are not compressed */
  isStored?: boolean
  /** names of files that are not those by which others refer to them */
  renamed?: Record<string, string>
}

/** A workbook of these parts, such as a spreadsheet program may write, or an attacker. */
export function workbook({
  sheets = {},
  sharedStrings,
  styles,
  properties = '',
  declared,
  isStored,
  renamed = {},
}: Parts): Buffer {
  const names = Object.keys(sheets)
  const listed = names
    .map((name, index) => `<sheet name="${name}" sheetId="${index + 1}" r:id="${index}"/>`)
    .join('')
  const typed = names.map((name) => (sheets[name] === undefined ? 'chartsheet' : 'worksheet'))
  const files: [name: string, text: string | Packed, size?: number | undefined][] = [
    ['[Content_Types].xml', '<Types/>'],
    ['_rels/.rels', relationships(['officeDocument', 'xl/workbook.xml'])],
    [
      'xl/workbook.xml',
      `<workbook xmlns:r="${office}">${properties}<sheets>${listed}</sheets></workbook>`,
    ],
    [
      'xl/_rels/workbook.xml.rels',
      relationships(
        ...typed.map((type, index): [string, string] => [type, `worksheets/sheet${index + 1}.xml`]),
        ['styles', 'styles.xml'],
        ['sharedStrings', '/xl/sharedStrings.xml'],
      ),
    ],
  ]
  for (const [index, name] of names.entries()) {
    const content = sheets[name]
    const sheet = typeof content === 'object' ? content : worksheet(content)
    files.push([`xl/worksheets/sheet${index + 1}.xml`, sheet, index === 0 ? declared : undefined])
  }
  if (styles !== undefined) files.push(['xl/styles.xml', `<styleSheet>${styles}</styleSheet>`])
  if (sharedStrings !== undefined)
    files.push(['xl/sharedStrings.xml', `<sst>${sharedStrings}</sst>`])
  const named = files.map<(typeof files)[number]>(([name, ...rest]) => [
    renamed[name] ?? name,
    ...rest,
  ])
  return zip(named, isStored)
}

function worksheet(content: string | undefined): string {
  return `<worksheet><sheetData>${content}</sheetData></worksheet>`
}

export interface Packed {
  bytes: Buffer
  size: number
  crc: number
}

/** A worksheet with a row that is repeated, which would be too large for a text. */
export function repeatedRow(header: string, row: string, count: number): Packed {
  const [start = '', end = ''] = worksheet('|').split('|')
  const unit = row.repeat(1000)
  const texts = [start + header, ...Array.from({ length: count / 1000 }, () => unit), end]
  const parts = new Map(texts.map((text) => [text, flushed(text)]))
  let [size, crc] = [0, 0]
  for (const text of texts) [size, crc] = [size + text.length, crc32(text, crc)]
  return {
    bytes: Buffer.concat([...texts.map((text) => must(parts.get(text))), deflateRawSync('')]),
    size,
    crc,
  }
}

/** Deflated, so that more may follow. */
function flushed(text: string): Buffer {
  return deflateRawSync(text, { finishFlush: constants.Z_FULL_FLUSH })
}

/** Each has its place as its id. */
function relationships(...relations: [type: string, target: string][]): string {
  const all = relations.map(
    ([type, target], id) =>
      `<Relationship Id="${id}" Type="${office}/${type}" Target="${target}"/>`,
  )
  return `<?xml version="1.0" encoding="UTF-8"?><Relationships>${all.join('')}</Relationships>`
}

/** @param files each with the size that the archive says, if it is another one */
export function zip(
  files: [name: string, text: string | Packed, size?: number | undefined][],
  isStored = false,
): Buffer {
  const locals: Buffer[] = []
  const entries: Buffer[] = []
  let offset = 0
  for (const [name, content, declared] of files) {
    const {
      bytes: packed,
      size,
      crc,
    } = typeof content === 'object' ? content : packedBytes(Buffer.from(content), isStored)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(isStored ? 0 : 8, 4)
    common.writeUInt32LE(crc, 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(declared ?? size, 18)
    common.writeUInt16LE(Buffer.byteLength(name), 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    const local = [Buffer.from('PK\x03\x04'), common, Buffer.from(name), packed]
    entries.push(Buffer.from('PK\x01\x02\x14\0', 'latin1'), common, place, Buffer.from(name))
    locals.push(...local)
    offset += Buffer.concat(local).length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(Buffer.concat(entries).length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, ...entries, end])
}

/** A worksheet, or another part, of any bytes. */
export function packedBytes(content: Buffer, isStored = false): Packed {
  const bytes = isStored ? content : deflateRawSync(content)
  return { bytes, size: content.length, crc: crc32(content) }
}

export function rows(...cells: string[][]): string {
  return cells.map((row) => `<row>${row.map((text) => inline(text)).join('')}</row>`).join('')
}

export function inline(text: string): string {
  return `<c t="inlineStr"><is><t>${text}</t></is></c>`
}

/** A part of a workbook, by the central directory of the archive (PKWARE's APPNOTE, 4.3.12). */
export function partOf(archive: Buffer, name: string): string {
  const mark = Buffer.from('PK\x01\x02')
  for (let at = archive.indexOf(mark); at >= 0; at = archive.indexOf(mark, at + mark.length)) {
    if (archive.toString('utf8', at + 46, at + 46 + archive.readUInt16LE(at + 28)) !== name)
      continue
    const header = archive.readUInt32LE(at + 42)
    const start =
      header + 30 + archive.readUInt16LE(header + 26) + archive.readUInt16LE(header + 28)
    return inflateRawSync(archive.subarray(start, start + archive.readUInt32LE(at + 20))).toString()
  }
  throw new Error(`The archive has no ${name}`)
}
