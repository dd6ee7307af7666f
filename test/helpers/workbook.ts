import { crc32, deflateRawSync } from 'node:zlib'

const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

export interface Parts {
  /** The content of `sheetData` by name, or the bytes of the part; a chart has none. */
  sheets?: Record<string, string | Buffer | undefined>
  sharedStrings?: string
  styles?: string
}

/** A workbook of these parts, such as a spreadsheet program may write, or an attacker. */
export function workbook({ sheets = {}, sharedStrings, styles }: Parts): Buffer {
  const contents = Object.entries(sheets)
  const list = contents.map(
    ([name], id) => `<sheet name="${name}" sheetId="${id + 1}" r:id="${id}"/>`,
  )
  const parts = contents.map(([, content], index): [type: string, target: string] => [
    content === undefined ? 'chartsheet' : 'worksheet',
    `worksheets/sheet${index + 1}.xml`,
  ])
  parts.push(['styles', 'styles.xml'], ['sharedStrings', '/xl/sharedStrings.xml'])
  const files: Record<string, string | Buffer> = {
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': relationships([['officeDocument', 'xl/workbook.xml']]),
    'xl/_rels/workbook.xml.rels': relationships(parts),
    'xl/workbook.xml': `<workbook xmlns:r="${office}"><sheets>${list.join('')}</sheets></workbook>`,
  }
  for (const [index, [, content]] of contents.entries())
    files[`xl/worksheets/sheet${index + 1}.xml`] = Buffer.isBuffer(content)
      ? content
      : `<worksheet><sheetData>${content}</sheetData></worksheet>`
  if (styles !== undefined) files['xl/styles.xml'] = `<styleSheet>${styles}</styleSheet>`
  if (sharedStrings !== undefined) files['xl/sharedStrings.xml'] = `<sst>${sharedStrings}</sst>`
  return zip(files)
}

function relationships(relations: [type: string, target: string][]): string {
  const all = relations.map(
    ([type, target], id) =>
      `<Relationship Id="${id}" Type="${office}/${type}" Target="${target}"/>`,
  )
  return `<?xml version="1.0" encoding="UTF-8"?><Relationships>${all.join('')}</Relationships>`
}

/** An archive of files by their names (PKWARE's APPNOTE, 4.3). */
export function zip(files: Record<string, string | Buffer>): Buffer {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [path, content] of Object.entries(files)) {
    const name = Buffer.from(path)
    const packed = deflateRawSync(content)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(8, 4) // deflate
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(Buffer.byteLength(content), 18)
    common.writeUInt16LE(name.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, packed])
    locals.push(local)
    directory.push(Buffer.from('PK\x01\x02\x14\0'), common, place, name)
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

export function rows(...cells: string[][]): string {
  return cells.map((row) => `<row>${row.map(inline).join('')}</row>`).join('')
}

export function inline(text: string): string {
  return `<c t="inlineStr"><is><t>${text}</t></is></c>`
}
