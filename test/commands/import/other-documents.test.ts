import { gzipSync } from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
import { buildCompoundFile } from '../../helpers/sandbox/damaged-archive.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { buildZip } from '../../helpers/sandbox/workbook.js'

// Files that somebody could take for a workbook.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

const openDocumentType = 'application/vnd.oasis.opendocument.text'

test.each<{ kind: string; file: Buffer; hint: string }>([
  { kind: 'a ZIP archive', file: buildZip({ 'plants.csv': 'id,name\n' }), hint: 'Unpack it' },
  {
    kind: 'an OpenDocument file, but no spreadsheet (.ods)',
    file: buildZip({ mimetype: openDocumentType }),
    hint: 'Save the list in it',
  },
  {
    kind: 'a Word or PowerPoint document',
    file: buildZip({ 'word/document.xml': '<a/>' }),
    hint: 'Save the list in it',
  },
  {
    kind: 'an Excel binary workbook (.xlsb)',
    file: buildZip({ 'xl/workbook.bin': '' }),
    hint: 'Save the list in it',
  },
  {
    kind: 'a document of Apple',
    file: buildZip({ 'Index/Document.iwa': '' }),
    hint: 'Save the list in it',
  },
  {
    kind: 'protected by a password',
    file: buildCompoundFile('EncryptedPackage'),
    hint: 'Remove the password',
  },
  {
    kind: 'an old workbook (.xls)',
    file: buildCompoundFile('Workbook'),
    hint: 'Save the list in it',
  },
  {
    kind: 'an old Office file',
    file: buildCompoundFile('WordDocument'),
    hint: 'Save the list in it',
  },
])(
  'the error for a file that is no workbook names what it is: $kind',
  async ({ kind, file, hint }) => {
    const { code, err } = await sandbox.import('', file)
    expect(code).toBe(2)
    expect(err).toContain(`plants: stdin is ${kind}`)
    expect(err).toContain(`\n  ${hint}`)
  },
)

test('the error for an empty ZIP archive names it', async () => {
  const { code, err } = await sandbox.import('', Buffer.from('PK\x05\x06'.padEnd(22, '\0')))
  expect(code).toBe(2)
  expect(err).toContain('plants: stdin is a ZIP archive\n')
})

test.each(['a.xlsx', 'a.XLSX.gz', 'a.xls', 'a.ods', 'a.csv.gz', 'a.gz'])(
  'the error for a file without bytes says that it is damaged if its format needs some: %s',
  async (file) => {
    sandbox.write(file, '')
    const { code, err } = await sandbox.import([file])
    expect(code).toBe(2)
    expect(err).toContain(`plants: ${file} is damaged or incomplete: it has no bytes\n`)
    expect(err).toMatch(/\n {2}Download or (?:compress|save) the file again\n$/)
  },
)

test.each(['a.csv', 'a.tsv', 'a.json', 'a.ndjson', 'a.txt', 'a'])(
  'a file without bytes has no records if its format needs none: %s',
  async (file) => {
    sandbox.write(file, '')
    expect(await sandbox.import([file])).toEqual({
      code: 0,
      err: `plants: warning: There are no records in ${file}\n`,
    })
  },
)

test('an empty packed file has no records', async () => {
  sandbox.write('a.csv.gz', gzipSync(''))
  expect(await sandbox.import('a.csv.gz')).toMatchObject({ code: 0 })
  sandbox.write('a.xlsx.gz', gzipSync(''))
  expect(await sandbox.import('a.xlsx.gz')).toMatchObject({ code: 2 })
})

test('an option for tables applies to an empty table', async () => {
  sandbox.write('a.csv', '')
  const { err } = await sandbox.import('a.csv --columns id,name --delimiter ; --no-quotes')
  expect(err).toBe('plants: warning: There are no records in a.csv\n')
})
