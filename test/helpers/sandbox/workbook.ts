import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

/** One shared string, which has two runs of text. */
export const sampleSharedStrings = '<si><r><t>bold </t></r><r><t>plain</t></r></si>'

const cellXfs = [0, 14, 164, 9].map((id) => `<xf numFmtId="${id}"/>`).join('')
const numFmts = '<numFmt numFmtId="164" formatCode="000000"/>'
/** Four styles: general, a date, six digits with zeros before them, and a percentage. */
export const sampleStyles = `<numFmts>${numFmts}</numFmts><cellXfs>${cellXfs}</cellXfs>`

/** The parts of a workbook for `buildWorkbook`. */
export interface Parts {
  /** The content of `sheetData` by name, or the bytes of the part; a chart has none. */
  sheets?: Record<string, string | Buffer | undefined>
  /** The names of sheets that nobody sees. */
  hidden?: string[]
  /** How they are hidden: `veryHidden` is a sheet that only a macro can show. */
  hiddenState?: 'hidden' | 'veryHidden'
  sharedStrings?: string
  styles?: string
  /** Elements before the sheets. */
  properties?: string
}

export function buildWorkbook({
  sheets = {},
  hidden = [],
  hiddenState = 'hidden',
  sharedStrings,
  styles,
  properties = '',
}: Parts): Buffer {
  const contents = Object.entries(sheets)
  const list = contents.map(([name], id) => {
    const state = hidden.includes(name) ? ` state="${hiddenState}"` : ''
    return `<sheet name="${name}" sheetId="${id + 1}" r:id="${id}"${state}/>`
  })
  const parts = contents.map(([, content], index): [type: string, target: string] => [
    content === undefined ? 'chartsheet' : 'worksheet',
    `worksheets/sheet${index + 1}.xml`,
  ])
  if (styles !== undefined) parts.push(['styles', 'styles.xml'])
  if (sharedStrings !== undefined) parts.push(['sharedStrings', '/xl/sharedStrings.xml'])
  const files: Record<string, string | Buffer> = {
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': buildRelationships([['officeDocument', 'xl/workbook.xml']]),
    'xl/_rels/workbook.xml.rels': buildRelationships(parts),
    'xl/workbook.xml': `<workbook xmlns:r="${office}">${properties}<sheets>${list.join('')}</sheets></workbook>`,
  }
  for (const [index, [, content]] of contents.entries())
    files[`xl/worksheets/sheet${index + 1}.xml`] = Buffer.isBuffer(content)
      ? content
      : `<worksheet><sheetData>${content}</sheetData></worksheet>`
  if (styles !== undefined) files['xl/styles.xml'] = `<styleSheet>${styles}</styleSheet>`
  if (sharedStrings !== undefined) files['xl/sharedStrings.xml'] = `<sst>${sharedStrings}</sst>`
  return buildZip(files)
}

/** A workbook with one sheet, P: its rows, or the bytes of its part. */
export function buildSheetWorkbook(sheet: string | Buffer, parts: Parts = {}): Buffer {
  return buildWorkbook({ sheets: { P: sheet }, ...parts })
}

export const plantHeader = buildRows(['id', 'name', 'tag'])

/** A workbook with one sheet, P, which has the columns of a plant above these rows. */
export function buildPlantWorkbook(rows: string, parts: Parts = {}): Buffer {
  return buildSheetWorkbook(plantHeader + rows, parts)
}

export function buildRelationships(relations: [type: string, target: string][]): string {
  const elements = relations.map(
    ([type, target], id) =>
      `<Relationship Id="${id}" Type="${office}/${type}" Target="${target}"/>`,
  )
  return `<?xml version="1.0" encoding="UTF-8"?><Relationships>${elements.join('')}</Relationships>`
}

/** An archive of files by their names (PKWARE's APPNOTE, 4.3). */
export function buildZip(files: Record<string, string | Buffer>): Buffer {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [path, content] of Object.entries(files)) {
    const name = Buffer.from(path)
    const packedContent = deflateRawSync(content)
    const commonFields = Buffer.alloc(26)
    commonFields.writeUInt16LE(20, 0)
    commonFields.writeUInt16LE(8, 4) // deflate
    commonFields.writeUInt32LE(crc32(content), 10)
    commonFields.writeUInt32LE(packedContent.length, 14)
    commonFields.writeUInt32LE(Buffer.byteLength(content), 18)
    commonFields.writeUInt16LE(name.length, 22)
    const fileLocation = Buffer.alloc(14)
    fileLocation.writeUInt32LE(offset, 10)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), commonFields, name, packedContent])
    locals.push(local)
    directory.push(Buffer.from('PK\x01\x02\x14\0'), commonFields, fileLocation, name)
    offset += local.length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06')
  end.writeUInt16LE(locals.length, 8)
  end.writeUInt16LE(locals.length, 10)
  end.writeUInt32LE(Buffer.concat(directory).length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, ...directory, end])
}

export function buildRows(...cells: string[][]): string {
  return cells.map((row) => `<row>${row.map(buildInlineCell).join('')}</row>`).join('')
}

export function buildInlineCell(text: string): string {
  return `<c t="inlineStr"><is><t>${text}</t></is></c>`
}

/** The contents of an archive by their names, which its directory has. */
export function unzip(bytes: Buffer): Record<string, string> {
  const files: Record<string, string> = {}
  let at = bytes.readUInt32LE(bytes.lastIndexOf('PK\x05\x06') + 16)
  while (bytes.toString('latin1', at, at + 4) === 'PK\x01\x02') {
    const packedLength = bytes.readUInt32LE(at + 20)
    const nameLength = bytes.readUInt16LE(at + 28)
    const extraLength = bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32)
    const local = bytes.readUInt32LE(at + 42)
    const name = bytes.toString('utf8', at + 46, at + 46 + nameLength)
    const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28)
    const packedContent = bytes.subarray(start, start + packedLength)
    const isPacked = bytes.readUInt16LE(at + 10) !== 0
    files[name] = (isPacked ? inflateRawSync(packedContent) : packedContent).toString()
    at += 46 + nameLength + extraLength
  }
  return files
}
