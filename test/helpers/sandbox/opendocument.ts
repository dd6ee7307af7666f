import { buildZip } from './workbook.js'

interface SheetParts {
  name: string
  /** The rows, as XML. */
  rows: string
  isHidden?: boolean
}

/**
 * An OpenDocument spreadsheet (ISO/IEC 26300-1).
 *
 * @param before elements before the sheets
 * @param parts other parts, or other contents of the parts
 */
export function buildOpenDocument(
  sheets: readonly SheetParts[],
  before = '',
  parts: Record<string, string> = {},
): Buffer {
  const namespaces = ['office', 'style', 'table', 'text'].map(
    (prefix) => `xmlns:${prefix}="urn:oasis:names:tc:opendocument:xmlns:${prefix}:1.0"`,
  )
  const styles = ['true', 'false'].map(
    (display) =>
      `<style:style style:name="${display}"><style:table-properties table:display="${display}"/></style:style>`,
  )
  const tables = sheets.map(
    ({ name, rows, isHidden = false }) =>
      `<table:table table:name="${name}" table:style-name="${!isHidden}">${rows}</table:table>`,
  )
  const body = `<office:body><office:spreadsheet>${before}${tables.join('')}</office:spreadsheet></office:body>`
  return buildZip({
    mimetype: 'application/vnd.oasis.opendocument.spreadsheet',
    'content.xml': `<office:document-content ${namespaces.join(' ')}><office:automatic-styles>${styles.join('')}</office:automatic-styles>${body}</office:document-content>`,
    ...parts,
  })
}

/** @param count how many equal rows there are */
export function buildOpenDocumentRow(cells: readonly string[], count = 1): string {
  const repeated = count === 1 ? '' : ` table:number-rows-repeated="${count}"`
  return `<table:table-row${repeated}>${cells.join('')}</table:table-row>`
}

export function buildOpenDocumentCell(text: string): string {
  return `<table:table-cell office:value-type="string"><text:p>${text}</text:p></table:table-cell>`
}
