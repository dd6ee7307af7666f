/*
 * Writes a workbook (ECMA-376) with one sheet of plants.
 *
 * An import of the workbook gives the same plants, except for an empty tag and white space at the
 * ends of a text, which a cell loses. A plant that a cell or a sheet cannot hold ends the export
 * with an error: a workbook that looks complete must be complete.
 *
 * Each cell has its text inline. Shared strings, as Excel writes them, would have to be in memory
 * until the last plant is read.
 */
import { Readable } from 'node:stream'
import { ZipFile } from 'yazl'
import { createInputError } from '../errors.js'
import { fieldNames } from '../plant/fields.js'
import { groupDigits, type StoredPlant } from '../plant/plant.js'

/**
 * Yields the bytes of a workbook. The iteration fails with `input` at a plant that a workbook
 * cannot hold.
 */
export function writeWorkbook(pages: AsyncIterable<StoredPlant[]>): AsyncIterable<Uint8Array> {
  const archive = new ZipFile()
  for (const [path, content] of Object.entries(fixedParts))
    archive.addBuffer(Buffer.from(xmlDeclaration + content), path, partOptions)
  const sheet = Readable.from(writeSheet(pages), { objectMode: false, highWaterMark: 65_536 })
  archive.addReadStream(sheet, 'xl/worksheets/sheet1.xml', partOptions)
  archive.end()
  const output = archive.outputStream as Readable
  // yazl ends its stream when the last part has ended, but not when a part fails: a reader would
  // wait forever.
  sheet.on('error', (error) => output.destroy(error))
  archive.on('error', (error) => output.destroy(error))
  return output
}

async function* writeSheet(pages: AsyncIterable<StoredPlant[]>): AsyncGenerator<string> {
  yield sheetStart
  let count = 0
  for await (const page of pages) {
    let rows = ''
    for (const plant of page) {
      count += 1
      if (count > maxPlants) throw createUnfitError(plant.id, tooManyReason)
      rows += formatRow(plant, count + 1)
    }
    yield rows
  }
  yield '</sheetData></worksheet>'
}

function formatRow(plant: StoredPlant, row: number): string {
  const { id, name, tag } = plant
  assertFits(plant)
  const isExact = id > -minInexactId && id < minInexactId
  const idCell = isExact ? `<c r="A${row}"><v>${id}</v></c>` : formatText(`A${row}`, String(id))
  const tagCell = tag === undefined ? '' : formatText(`C${row}`, tag)
  return `<row r="${row}">${idCell}${formatText(`B${row}`, name)}${tagCell}</row>`
}

function assertFits({ id, name, tag = '' }: StoredPlant): void {
  if (name.trim() === '')
    throw createUnfitError(id, 'its name is empty or only white space, which a cell does not keep')
  assertFieldFits(id, 'name', name)
  assertFieldFits(id, 'tag', tag)
}

function assertFieldFits(id: bigint, field: string, text: string): void {
  if (text.length <= maxCellLength) return
  const length = `its ${field} is ${groupDigits(text.length)} UTF-16 units long`
  throw createUnfitError(id, `${length}, and a cell holds at most ${groupDigits(maxCellLength)}`)
}

function createUnfitError(id: bigint, reason: string): Error {
  const message = `Plant ${id} does not fit in a workbook: ${reason}`
  return createInputError(message, 'Export to another format, such as .ndjson')
}

/**
 * Formats a cell with a text. Its type keeps a spreadsheet from reading more into it: `=1+1` does
 * not become a formula, nor `1/2` a date.
 *
 * @param reference the column and the row, such as `B7`
 */
function formatText(reference: string, text: string): string {
  const content = escapeText(text)
  return `<c r="${reference}" t="inlineStr"><is><t xml:space="preserve">${content}</t></is></c>`
}

function escapeText(text: string): string {
  return special.test(text) ? text.replace(everySpecial, escapeUnit) : text
}

function escapeUnit(unit: string): string {
  const entity = entities[unit]
  if (entity !== undefined) return entity
  return `_x${unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Characters that XML cannot contain (XML 1.0, 2.2), and CR, which a parser replaces (2.11). */
const unwritable = '\\u0000-\\u0008\\u000b-\\u001f\\ufffe\\uffff'
/**
 * A reader takes `_x0041_` for an `A` (ECMA-376 part 1, 22.4.2.4), and LibreOffice also `_x41_`. So
 * if a plant really has such a text, its first `_` is escaped.
 */
const escapeStart = `_(?=x[\\da-fA-F]{1,4}[_${unwritable}])`
const special = RegExp(`[&<>${unwritable}]|${escapeStart}`)
const everySpecial = RegExp(special, 'g')

/** Excel allows this many UTF-16 units in a cell. */
const maxCellLength = 32_767
/** Excel allows 1,048,576 rows in a sheet, of which one is the header. */
const maxPlants = 1_048_575
const tooManyReason = `a sheet has at most ${groupDigits(maxPlants)} plants`
/** A spreadsheet keeps 15 digits of a number, so an id with more of them is written as a text. */
const minInexactId = 10n ** 15n

/** The parts have a fixed date, so that the same plants give the same bytes at any time. */
const partOptions = { mtime: new Date(1980, 0, 1), forceDosTimestamp: true, compressionLevel: 4 }

const xmlDeclaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
const packageSchema = 'http://schemas.openxmlformats.org/package/2006'
const officeSchema = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const sheetSchema = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
const contentType = 'application/vnd.openxmlformats-officedocument.spreadsheetml'

const fixedParts: Readonly<Record<string, string>> = {
  '[Content_Types].xml': `<Types xmlns="${packageSchema}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/xl/workbook.xml" ContentType="${contentType}.sheet.main+xml"/>
<Override PartName="/xl/worksheets/sheet1.xml" ContentType="${contentType}.worksheet+xml"/>
</Types>`,
  '_rels/.rels': `<Relationships xmlns="${packageSchema}/relationships">
<Relationship Id="rId1" Type="${officeSchema}/officeDocument" Target="xl/workbook.xml"/>
</Relationships>`,
  'xl/_rels/workbook.xml.rels': `<Relationships xmlns="${packageSchema}/relationships">
<Relationship Id="rId1" Type="${officeSchema}/worksheet" Target="worksheets/sheet1.xml"/>
</Relationships>`,
  'xl/workbook.xml': `<workbook xmlns="${sheetSchema}" xmlns:r="${officeSchema}">
<sheets><sheet name="Plants" sheetId="1" r:id="rId1"/></sheets>
</workbook>`,
}

const headerCells = fieldNames.map((name, column) => formatText(`${'ABC'[column]}1`, name))

/** The header is frozen, so that it stays visible when somebody scrolls. */
const sheetStart = `${xmlDeclaration}<worksheet xmlns="${sheetSchema}">
<sheetViews><sheetView workbookViewId="0">
<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>
</sheetView></sheetViews>
<cols><col min="1" max="3" width="24" customWidth="1"/></cols>
<sheetData><row r="1">${headerCells.join('')}</row>`
