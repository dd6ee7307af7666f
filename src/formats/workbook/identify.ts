/*
 * Identifies files that begin like a workbook, but are not workbooks. They are ZIP archives of
 * other programs, or compound files (MS-CFB). Office stored every document in a compound file
 * before 2007, and still does so if the document has a password. The message "stock.xls is an old
 * workbook" helps a person more than "stock.xls is damaged".
 */
import { createInputError, type PlantsError } from '../../errors.js'
import type { Archive } from './archive.js'

interface FileKind {
  /** The end of a message: `stock.ods is ` precedes it. */
  description: string
  hint: string
}

const saveAsXlsxHint = 'Save it as .xlsx or CSV, and import that'
const saveListHint = 'Save the list in it as .xlsx or CSV, and import that'

/** The kind of an archive is the first one whose path an entry of the archive has. */
const archiveKinds: readonly (FileKind & { path: RegExp })[] = [
  {
    path: /^xl\/workbook\.bin$/,
    description: 'an Excel binary workbook (.xlsb)',
    hint: saveAsXlsxHint,
  },
  { path: /^word\/document\.xml$/, description: 'a Word document (.docx)', hint: saveListHint },
  {
    path: /^ppt\/presentation\.xml$/,
    description: 'a PowerPoint file (.pptx)',
    hint: saveListHint,
  },
  {
    path: /^index(?:\.zip|\/.*\.iwa)$/,
    description: 'a document of Apple Numbers, Pages or Keynote',
    hint: 'In Numbers, export it as Excel or CSV, and import that',
  },
]

/** @throws {PlantsError} `input` if the archive is not a workbook, with the kind that it is */
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
  if (!isOffice)
    return { description: 'a ZIP archive', hint: 'Unpack it, and import the files in it' }
  const hint = 'Remove the password in the spreadsheet, save it, and import that'
  return archive.isEncrypted ? { description: 'protected by a password', hint } : undefined
}

/** The first part of an OpenDocument file has its media type (OpenDocument 1.3, part 2, 3.3). */
async function findOpenDocument(archive: Archive): Promise<FileKind | undefined> {
  if (!archive.has('mimetype') || archive.measure('mimetype') > 200) return undefined
  let type = ''
  for await (const block of archive.read('mimetype')) type += block.toString('latin1')
  if (!type.startsWith('application/vnd.oasis.opendocument.')) return undefined
  if (type.includes('spreadsheet'))
    return { description: 'an OpenDocument spreadsheet (.ods)', hint: saveAsXlsxHint }
  return { description: 'an OpenDocument file', hint: saveListHint }
}

/** The kind of a compound file is the first one whose stream is in the file. */
const streamKinds: readonly (FileKind & { stream: string })[] = [
  {
    stream: 'EncryptedPackage',
    description: 'protected by a password',
    hint: 'Remove the password in the spreadsheet, save it, and import that',
  },
  { stream: 'Workbook', description: 'an old workbook (.xls)', hint: saveAsXlsxHint },
  { stream: 'Book', description: 'an old workbook (.xls)', hint: saveAsXlsxHint },
  { stream: 'WordDocument', description: 'an old Word document (.doc)', hint: saveListHint },
]

export function isCompoundFile(head: Buffer): boolean {
  return head.toString('latin1', 0, 4) === '\xd0\xcf\x11\xe0'
}

/** Creates the error that says what the compound file is. */
export function createCompoundFileError(file: string, content: Buffer): PlantsError {
  const kind = streamKinds.find(({ stream }) => hasStream(content, stream))
  return createKindError(file, kind ?? { description: 'an old Office file', hint: saveListHint })
}

/**
 * Looks for the directory entry of a stream (MS-CFB 2.6.1) without reading the directory, whose
 * sectors are chained. An entry has 128 bytes. It begins with its name in UTF-16, and has the
 * length of the name at byte 64, and the type of the object at byte 66. A text that happens to have
 * the name is hardly followed by these.
 */
function hasStream(content: Buffer, name: string): boolean {
  const bytes = Buffer.from(`${name}\0`, 'utf16le')
  let index = content.indexOf(bytes)
  while (index !== -1) {
    const hasLength =
      index + 66 < content.length && content.readUInt16LE(index + 64) === bytes.length
    if (index % 128 === 0 && hasLength && content[index + 66] === streamType) return true
    index = content.indexOf(bytes, index + 1)
  }
  return false
}

const streamType = 2

function createKindError(file: string, { description, hint }: FileKind): PlantsError {
  return createInputError(`${file} is ${description}`, hint)
}
