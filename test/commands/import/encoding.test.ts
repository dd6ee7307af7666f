import { expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

const latin1 = (text: string) => Buffer.from(text, 'latin1')
/** `Łąka` in Windows-1250. */
const polish = latin1('id,name\n1,\xa3\xb9ka\n')

test('an import of several files with --encoding ends at a file of UTF-8, and stores nothing', async () => {
  const user = new ImportSandbox()
  user.write('polish.csv', polish)
  user.write('german.csv', 'id,name\n2,Größe\n')
  const { code, err } = await user.import('polish.csv german.csv --encoding windows-1250')
  expect({ code, err }).toEqual({
    code: 2,
    err: 'plants: german.csv is UTF-8, not windows-1250\n' + '  Import it without --encoding\n',
  })
  expect(await user.list()).toBe('')
  expect(await user.import('polish.csv --encoding windows-1250')).toMatchObject({ created: 1 })
  expect(await user.import('german.csv')).toMatchObject({ created: 1 })
  expect(await user.list()).toBe(buildPlantLine(1, 'Łąka') + buildPlantLine(2, 'Größe'))
})

test('an import with --encoding reads a file with a byte order mark or of ASCII as it is', async () => {
  const user = new ImportSandbox()
  user.write('polish.csv', polish)
  user.write('marked.csv', '\ufeffid,name\n2,Größe\n')
  user.write('ascii.csv', 'id,name\n3,Moss\n')
  const files = 'polish.csv marked.csv ascii.csv'
  expect(await user.import(`${files} --encoding windows-1250`)).toMatchObject({ created: 3 })
  expect(await user.list()).toContain(buildPlantLine(2, 'Größe'))
})

test.each([
  ['NDJSON', '{"id":1,"name":"Größe"}\n'],
  ['JSON', '[{"id":1,"name":"Größe"}]'],
  ['TSV', 'id\tname\n1\tGröße\n'],
])('an import does not read %s of UTF-8 on stdin in another encoding', async (_, stdin) => {
  const user = new ImportSandbox()
  const { code, err } = await user.import('--encoding latin1', stdin)
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringContaining('stdin is UTF-8, not windows-1252\n'),
  })
  expect(await user.list()).toBe('')
})

test('the error for a pipe that is not UTF-8 shows a line in three encodings', async () => {
  const user = new ImportSandbox()
  const { code, err } = await user.import('', latin1('id,name\n1,R\xf3wnina\n'))
  expect(code).toBe(2)
  expect(err).toMatch(
    /^plants: stdin is not UTF-8 \(line 2\)\n(?: {2}line 2 in \S+: 1,R.+wnina\n){3} {2}Add --encoding/,
  )
})
