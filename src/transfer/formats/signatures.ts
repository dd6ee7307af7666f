import { inputError } from '../../platform/errors.js'

type Signature = [pattern: RegExp, what: string, hint: string]

/** Tests of the first bytes, as Latin-1. */
const binary: readonly Signature[] = [
  [/^\xfd7zXZ\0/, 'compressed with xz', 'Unpack it first: xz -d'],
  [/^BZh\d1AY&SY/, 'compressed with bzip2', 'Unpack it first: bzip2 -d'],
  [/^\x28\xb5\x2f\xfd/, 'compressed with zstd', 'Unpack it first: zstd -d'],
  [/^\x1f\x8b/, 'compressed with gzip twice', 'Unpack it first: gzip -d'],
  [/^7z\xbc\xaf\x27\x1c/, 'a 7-Zip archive', 'Unpack it first'],
  [/^Rar!\x1a\x07/, 'a RAR archive', 'Unpack it first'],
  [/^.{257}ustar[\0 ]/s, 'a tar archive', 'Unpack it first: tar -xf'],
  // Its first file begins after 30 bytes with its name. A workbook is one, too.
  [
    /^PK\x03\x04.{26}[ -~\x80-\xff]{0,200}\.(?:csv|tsv|txt|json|ndjson)/is,
    'a ZIP archive',
    'Unpack it first',
  ],
  [/^SQLite format 3\0/, 'an SQLite database', 'If it is a store of plants, name it with --store'],
  [/^PAR1[^\t\n\r -~]/, 'a Parquet file', 'Convert it to CSV first'],
  [
    /^\xd0\xcf\x11\xe0/,
    'an old workbook (.xls), or has a password',
    'Save it as .xlsx, without a password',
  ],
  [/^\x89PNG\r\n|^\xff\xd8\xff|^GIF8[79]a/, 'a picture', 'Import the list that it shows'],
  [/^%PDF-\d/, 'a PDF document', 'Import the list that it was made from, such as a workbook'],
  [/^PGDMP/, 'a dump of a database', 'Export the table as CSV instead'],
]

/** Tests of the decoded beginning. A table could begin so, which `format` says. */
const textual: readonly Signature[] = [
  [/^version https:\/\/git-lfs/, 'a pointer of Git LFS', 'Fetch the file itself: git lfs pull'],
  [/^\{\\rtf/, 'rich text (RTF)', 'Save it as plain text, or its table as .xlsx'],
  [
    /^<.{0,2000}urn:schemas-microsoft-com:office:spreadsheet/s,
    'an XML Spreadsheet 2003',
    'Save it as .xlsx',
  ],
  [
    /^<(?:!doctype html|html|head|body|table|meta|script)\b/i,
    'HTML',
    'If it shows a table, save that as .xlsx',
  ],
  [/^<\?xml\b/, 'XML', 'Convert it to CSV or JSON first'],
  [
    /^(?:--|\/\*).{0,200}\b(?:SQL|database|MariaDB) dump\b/is,
    'a dump of SQL',
    'Export the table as CSV instead',
  ],
]

/** Throws `input` for the bytes of something that is no text and no workbook. */
export function refuseBinary(head: Buffer, source: string): void {
  refuse(binary, head.toString('latin1', 0, 512), source)
}

/** Throws `input` for ASCII in UTF-16 without a byte order mark. */
export function refuseUtf16(head: Buffer, source: string): void {
  const start = head.toString('latin1', 0, 8)
  const encoding = /^(?:[^\0]\0){4}/.test(start)
    ? 'utf-16le'
    : /^(?:\0[^\0]){4}/.test(start)
      ? 'utf-16be'
      : undefined
  if (encoding)
    throw inputError(`${source} seems to be in UTF-16`, `Name its encoding: --encoding ${encoding}`)
}

/**
 * Throws `input` for a text that is something else than a list.
 *
 * @param isKnown whether its name or an option says what it is
 */
export function refuseText(start: string, source: string, isKnown: boolean): void {
  refuse(textual, start, source)
  const line = /^[^\n]*/.exec(start)?.[0] ?? ''
  if (line.includes('\0') || (!isKnown && /^[^{[].*[\x01-\x08\x0e-\x1a]/.test(line)))
    throw inputError(
      `${source} is no text, and of no format that is known`,
      'Save it as CSV, JSON or .xlsx',
    )
}

function refuse(signatures: readonly Signature[], start: string, source: string): void {
  for (const [pattern, what, hint] of signatures)
    if (pattern.test(start)) throw inputError(`${source} is ${what}`, hint)
}

/** Throws `input` for an archive that is no workbook, by the names of its files. */
export function refuseArchive(names: readonly string[], source: string): void {
  const has = (pattern: RegExp) => names.some((name) => pattern.test(name))
  if (has(/^mimetype$/))
    throw inputError(`${source} is an OpenDocument file (.ods)`, 'Save it as .xlsx')
  if (has(/workbook\.bin$/))
    throw inputError(`${source} is a binary workbook (.xlsb)`, 'Save it as .xlsx, or as CSV')
  if (has(/^word\//))
    throw inputError(`${source} is a Word document (.docx)`, 'Save its table as .xlsx')
  if (has(/^Index(?:\.zip$|\/)/))
    throw inputError(`${source} is a file of Apple Numbers`, 'Export it as .xlsx or CSV')
  if (!has(/^\[Content_Types\]\.xml$/))
    throw inputError(`${source} is a ZIP archive`, 'Unpack it first')
}
