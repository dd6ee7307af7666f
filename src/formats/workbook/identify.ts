/*
 * Identifies files that begin like a workbook and are none: ZIP archives of other programs, and
 * compound files (MS-CFB), in which Office stored everything before 2007, and still stores what has
 * a password. "stock.xls is an old workbook" helps a person more than "stock.xls is damaged".
 */
import { inputError, type PlantsError } from '../../errors.js'
import type { Archive } from './archive.js'

interface FileKind {
  /** The end of a message: `stock.ods is ` precedes it. */
  what: string
  hint: string
}

const saveAsXlsx = 'Save it as .xlsx or CSV, and import that'
const withoutRows = 'Save the list in it as .xlsx or CSV, and import that'

/** An archive is of the first kind here of which it has a part. */
const archiveKinds: readonly (FileKind & { path: RegExp })[] = [
  { path: /^xl\/workbook\.bin$/, what: 'an Excel binary workbook (.xlsb)', hint: saveAsXlsx },
  { path: /^word\/document\.xml$/, what: 'a Word document (.docx)', hint: withoutRows },
  { path: /^ppt\/presentation\.xml$/, what: 'a PowerPoint file (.pptx)', hint: withoutRows },
  {
    path: /^index(?:\.zip|\/.*\.iwa)$/,
    what: 'a document of Apple Numbers, Pages or Keynote',
    hint: 'In Numbers, export it as Excel or CSV, and import that',
  },
]

/** @throws {PlantsError} `input`, with what the archive is instead of a workbook */
export async function assertWorkbook(archive: Archive, file: string): Promise<void> {
  const kind = (await findOpenDocument(archive)) ?? findArchiveKind(archive)
  if (kind) throw createKindError(file, kind)
}

function findArchiveKind(archive: Archive): FileKind | undefined {
  const { paths } = archive
  const archiveKind = archiveKinds.find(({ path }) =>
    paths.some((candidate) => path.test(candidate)),
  )
  if (archiveKind) return archiveKind
  const isOffice = archive.has('_rels/.rels') || paths.some((path) => path.startsWith('xl/'))
  if (!isOffice) return { what: 'a ZIP archive', hint: 'Unpack it, and import the files in it' }
  const hint = 'Remove the password in the spreadsheet, save it, and import that'
  return archive.isEncrypted ? { what: 'protected by a password', hint } : undefined
}

/** The first part of an OpenDocument file has its media type (OpenDocument 1.3, part 2, 3.3). */
async function findOpenDocument(archive: Archive): Promise<FileKind | undefined> {
  if (!archive.has('mimetype') || archive.measure('mimetype') > 200) return undefined
  let type = ''
  for await (const block of archive.read('mimetype')) type += block.toString('latin1')
  if (!type.startsWith('application/vnd.oasis.opendocument.')) return undefined
  if (type.includes('spreadsheet'))
    return { what: 'an OpenDocument spreadsheet (.ods)', hint: saveAsXlsx }
  return { what: 'an OpenDocument file', hint: withoutRows }
}

/** A compound file is of the first kind here whose stream it has. */
const streamKinds: readonly (FileKind & { stream: string })[] = [
  {
    stream: 'EncryptedPackage',
    what: 'protected by a password',
    hint: 'Remove the password in the spreadsheet, save it, and import that',
  },
  { stream: 'Workbook', what: 'an old workbook (.xls)', hint: saveAsXlsx },
  { stream: 'Book', what: 'an old workbook (.xls)', hint: saveAsXlsx },
  { stream: 'WordDocument', what: 'an old Word document (.doc)', hint: withoutRows },
]

export function isCompoundFile(head: Buffer): boolean {
  return head.toString('latin1', 0, 4) === '\xd0\xcf\x11\xe0'
}

/** Creates the error that says what the compound file is. */
export function createCompoundFileError(file: string, content: Buffer): PlantsError {
  const kind = streamKinds.find(({ stream }) => hasStream(content, stream))
  return createKindError(file, kind ?? { what: 'an old Office file', hint: withoutRows })
}

/**
 * Looks for the directory entry of a stream (MS-CFB 2.6.1) without reading the directory, whose
 * sectors are chained. An entry has 128 bytes. It begins with its name in UTF-16, and has the
 * length of the name at byte 64, and the type of the object at byte 66. A text that happens to have
 * the name is hardly followed by these.
 */
function hasStream(content: Buffer, name: string): boolean {
  const bytes = Buffer.from(`${name}\0`, 'utf16le')
  let at = content.indexOf(bytes)
  while (at !== -1) {
    const hasLength = at + 66 < content.length && content.readUInt16LE(at + 64) === bytes.length
    if (at % 128 === 0 && hasLength && content[at + 66] === streamType) return true
    at = content.indexOf(bytes, at + 1)
  }
  return false
}

const streamType = 2

function createKindError(file: string, { what, hint }: FileKind): PlantsError {
  return inputError(`${file} is ${what}`, hint)
}
