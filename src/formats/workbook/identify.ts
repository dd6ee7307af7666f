/*
 * Identifies workbooks, and files that begin like one, but are none. They are ZIP archives of
 * other programs, or compound files (MS-CFB). Office stored every document in a compound file
 * before 2007, and still does so if the document has a password. The message "stock.xls is an old
 * workbook" helps a person more than "stock.xls is damaged".
 */
import { createInputError, type PlantsError } from '../../errors.js'
import type { Archive } from './archive.js'

const saveHint = 'Save the list in it as .xlsx or CSV, and import that'

/** The kind of an archive is the first one whose path an entry of the archive has. */
const archiveKinds: readonly (readonly [path: RegExp, description: string])[] = [
  [/^mimetype$/, 'an OpenDocument file, but no spreadsheet (.ods)'],
  [/^xl\/workbook\.bin$/, 'an Excel binary workbook (.xlsb)'],
  [/^(?:word|ppt)\//, 'a Word or PowerPoint document'],
  [/^index(?:\.zip|\/.*\.iwa)$/, 'a document of Apple Numbers, Pages or Keynote'],
]

/** @throws {PlantsError} `input` if the archive is not a workbook, with the kind that it is */
export async function identifyWorkbook(archive: Archive): Promise<'xlsx' | 'ods'> {
  const { paths, file } = archive
  if (await isOpenDocumentSpreadsheet(archive)) {
    if (await isEncryptedOpenDocument(archive)) throw createPasswordError(file)
    return 'ods'
  }
  for (const [path, description] of archiveKinds)
    if (paths.some((candidate) => path.test(candidate)))
      throw createInputError(`${file} is ${description}`, saveHint)
  const isOffice = archive.has('_rels/.rels') || paths.some((path) => path.startsWith('xl/'))
  if (!isOffice)
    throw createInputError(`${file} is a ZIP archive`, 'Unpack it, and import the files in it')
  if (archive.isEncrypted) throw createPasswordError(file)
  return 'xlsx'
}

async function isOpenDocumentSpreadsheet(archive: Archive): Promise<boolean> {
  if (!archive.has('mimetype') || archive.measure('mimetype') > maxTypeBytes) return false
  const type = (await archive.readWhole('mimetype')).toString().trim()
  return type === 'application/vnd.oasis.opendocument.spreadsheet'
}

/** The entries of the archive are then encrypted one by one, which only the manifest says. */
async function isEncryptedOpenDocument(archive: Archive): Promise<boolean> {
  const manifest = 'META-INF/manifest.xml'
  if (!archive.has(manifest)) return false
  archive.assertSize(manifest)
  return (await archive.readWhole(manifest)).includes('encryption-data')
}

export function isCompoundFile(head: Buffer): boolean {
  return head.toString('latin1', 0, 4) === '\xd0\xcf\x11\xe0'
}

/** Creates the error that says what the compound file is, by a name in its directory. */
export function createCompoundFileError(file: string, content: Buffer): PlantsError {
  const hasStream = (name: string) => content.includes(Buffer.from(`${name}\0`, 'utf16le'))
  if (hasStream('EncryptedPackage')) return createPasswordError(file)
  const isWorkbook = hasStream('Workbook') || hasStream('Book')
  const description = isWorkbook ? 'an old workbook (.xls)' : 'an old Office file'
  return createInputError(`${file} is ${description}`, saveHint)
}

function createPasswordError(file: string): PlantsError {
  return createInputError(
    `${file} is protected by a password`,
    'Remove the password in the spreadsheet, save it, and import that',
  )
}

/** The media type of a spreadsheet has 46 bytes. */
const maxTypeBytes = 100
