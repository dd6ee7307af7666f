/*
 * Names what is not a workbook that can be read, although it begins as one: ZIP archives of other
 * programs, and compound files (MS-CFB), in which Office kept everything before 2007 and keeps
 * what has a password.
 */
import { inputError, type PlantsError } from '../../errors.js'
import type { Archive } from './archive.js'

interface Kind {
  what: string
  hint: string
}

const saveAsXlsx = 'Save it as .xlsx or CSV, and import that'
const withoutRows = 'Save the list in it as .xlsx or CSV, and import that'

/** Kinds of archives by the paths of their parts. */
const archiveKinds: readonly (Kind & { path: RegExp })[] = [
  { path: /^xl\/workbook\.bin$/, what: 'an Excel binary workbook (.xlsb)', hint: saveAsXlsx },
  { path: /^word\/document\.xml$/, what: 'a Word document (.docx)', hint: withoutRows },
  { path: /^ppt\/presentation\.xml$/, what: 'a PowerPoint file (.pptx)', hint: withoutRows },
  {
    path: /^index(?:\.zip|\/.*\.iwa)$/,
    what: 'a document of Apple Numbers, Pages or Keynote',
    hint: 'In Numbers, export it as Excel or CSV, and import that',
  },
]

/** Throws `input` with what it is, unless it is a workbook. */
export async function assertWorkbook(archive: Archive, file: string): Promise<void> {
  const kind = (await findOpenDocument(archive)) ?? findArchiveKind(archive)
  if (kind) throw createKindError(file, kind)
}

function findArchiveKind(archive: Archive): Kind | undefined {
  const { paths } = archive
  const known = archiveKinds.find(({ path }) => paths.some((candidate) => path.test(candidate)))
  if (known) return known
  const isOffice = archive.has('_rels/.rels') || paths.some((path) => path.startsWith('xl/'))
  if (!isOffice) return { what: 'a ZIP archive', hint: 'Unpack it, and import the files in it' }
  const hint = 'Remove the password in the spreadsheet, save it, and import that'
  return archive.isEncrypted ? { what: 'protected by a password', hint } : undefined
}

/** An OpenDocument file says in its first part what it is (OpenDocument 1.3, part 2, 3.3). */
async function findOpenDocument(archive: Archive): Promise<Kind | undefined> {
  if (!archive.has('mimetype') || archive.measure('mimetype') > 200) return undefined
  let type = ''
  for await (const block of archive.read('mimetype')) type += block.toString('latin1')
  if (!type.startsWith('application/vnd.oasis.opendocument.')) return undefined
  if (type.includes('spreadsheet'))
    return { what: 'an OpenDocument spreadsheet (.ods)', hint: saveAsXlsx }
  return { what: 'an OpenDocument file', hint: withoutRows }
}

/** Streams of compound files, and who writes them. */
const streamKinds: readonly (Kind & { stream: string })[] = [
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

/** Says what a compound file is. */
export function createCompoundFileError(file: string, content: Buffer): PlantsError {
  const kind = streamKinds.find(({ stream }) => hasStream(content, stream))
  return createKindError(file, kind ?? { what: 'an old Office file', hint: withoutRows })
}

/** Looks for the entry of a stream in the directory, whose entries have 128 bytes each. */
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

/** The object type of a stream (MS-CFB 2.6.1). */
const streamType = 2

function createKindError(file: string, { what, hint }: Kind): PlantsError {
  return inputError(`${file} is ${what}`, hint)
}
