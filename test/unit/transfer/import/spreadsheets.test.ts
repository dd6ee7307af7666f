import { describe, expect, test } from 'vitest'
import { Importing, imported } from '../../../helpers/importing.js'

const plants = ['{"id":1,"name":"Fern","tag":"shade"}', '{"id":2,"name":"Bärlauch; wild"}', '']
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')
/** The characters that the tests have outside ASCII are those of ISO 8859-1, but for the euro sign. */
const windows1252 = (text: string) => Buffer.from(text.replaceAll('€', '\x80'), 'latin1')

interface Sheet {
  name: string
  content: string | Uint8Array
  flags?: string[]
  /** what the first try says, for one that fails; the hint says what works */
  failure?: string
  /** the flags in the hint */
  hint?: string
  plants?: string[]
  /** what remains to be said of what was imported */
  err?: string
}

const noId = 'id must be an integer, in digits only'

const sheets: Sheet[] = [
  { name: 'of an English Excel', content: '\ufeffid,name,tag\r\n1,Fern,shade\r\n2,Bärlauch; wild,\r\n' },
  { name: 'of a German Excel', content: '\ufeffID;Name;Tag\r\n1;Fern;shade\r\n2;"Bärlauch; wild";\r\n' },
  {
    name: 'of a French Excel, with a line that names the delimiter',
    content: 'sep=;\r\nid;name;tag\r\n1;Fern;shade\r\n2;"Bärlauch; wild"\r\n',
  },
  { name: 'as Unicode text', content: utf16('id\tname\ttag\r\n1\tFern\tshade\r\n2\tBärlauch; wild\t\r\n') },
  {
    name: 'in Windows-1252',
    content: windows1252('id;name;tag\r\n1;Fern;shade\r\n2;"Bärlauch; wild";\r\n3;Fünf €;\r\n'),
    err: 'plants: sheet.csv is not UTF-8, and is read as windows-1252. For another encoding: --encoding NAME\n',
    plants: [...plants.slice(0, 2), '{"id":3,"name":"Fünf €"}', ''],
  },
  {
    name: 'with a line break in a cell',
    content: 'id,name,tag\r\n1,Fern,"in the\r\nshade"\r\n',
    plants: ['{"id":1,"name":"Fern","tag":"in the\\r\\nshade"}', ''],
  },
  { name: 'without a header', content: '1,Fern,shade\r\n2,Bärlauch; wild,\r\n', flags: ['--columns', 'id,name,tag'] },
  { name: 'of an old Mac', content: 'id,name,tag\r1,Fern,shade\r2,Bärlauch; wild,\r' },
  {
    name: 'of an old Mac, with a line that names the delimiter',
    content: 'sep=;\rid;name;tag\r1;Fern;shade\r2;"Bärlauch; wild"',
  },
  {
    name: 'with spaces, and zeros in front of ids',
    content: 'id , name, tag\n 0001 , Fern ,\tshade\n02,Bärlauch; wild,  \n',
  },
  { name: 'with a header in other case, and spaces', content: 'Id, NAME , tag \n1,Fern,shade\n2,Bärlauch; wild,\n' },
  {
    name: 'with commas at the end, and blank rows',
    content: 'id,name,tag,,\n1,Fern,shade,,\n2,Bärlauch; wild,,,\n,,,,\n',
  },
  { name: 'with a title', content: 'My plants 2024;;\r\n;;\r\nid;name;tag\r\n1;Fern;shade\r\n2;"Bärlauch; wild";\r\n' },
  { name: 'with pipes', content: 'id|name|tag\n1|Fern|shade\n2|Bärlauch; wild\n' },
  {
    name: 'with dates as ids, which are numbered',
    content: 'id,name,tag\n2024-01-05,Fern,shade\n2024-01-06,Bärlauch; wild,\n',
    flags: ['--map', 'id=', '--id-from', '1'],
  },
  {
    name: 'with long ids in exponents',
    content: 'id;name\n9,22337E+18;Fern\n1,00E+02;Moss\n',
    failure:
      'sheet.csv:2: Invalid plant: id must have all its digits, but was "9,22337E+18": a spreadsheet may have rounded it',
    hint: '--if-exists same --rejects rejected.txt',
    plants: [''],
  },
  {
    name: 'with an id that is a word, and a row without a name',
    content: 'id,name\nabc,Fern\n7,\n',
    failure: `sheet.csv:2: Invalid plant: ${noId}, but was "abc"`,
    hint: '--if-exists same --rejects rejected.txt',
    plants: [''],
  },
  {
    name: 'with ids that are none, which are numbered',
    content: 'id,name,tag\nA-1,Fern,shade\nA-2,Bärlauch; wild,\n',
    flags: ['--map', 'id=', '--id-from', '1'],
  },
]

test.each<[string, string[], string, string]>([
  ['are none', [], 'id,name\nA-7,Fern\n', '--map id= --id-from next'],
  ['are none, beside --map', ['--map', 'name=Plant'], 'id,Plant\nA-7,Fern\n', '--map name=Plant,id= --id-from next'],
  ['are missing', [], '{"name":"Fern"}\n', '--map id= --id-from next'],
])('the hint for ids that %s imports them', async (_, flags, stdin, command) => {
  const user = new Importing()
  const hint = `\n  To number the plants, whatever ids they have, run it again with: ${command}\n`
  expect((await user.import(flags, { stdin })).err).toContain(hint)
  expect(await user.import(command.split(' '), { stdin })).toEqual(
    imported({ created: 1 }, 'plants: Plants without an id got 1\n'),
  )
})

describe.each(sheets)(
  'a spreadsheet $name',
  ({ content, flags = [], failure, hint, plants: expected = plants, err = '' }) => {
    test(failure === undefined ? 'is imported at the first try' : 'says what works', async () => {
      const user = new Importing()
      user.write('sheet.csv', content)
      const first = await user.import(['sheet.csv', ...flags])
      if (failure === undefined) expect(first).toEqual(imported({ created: expected.length - 1 }, err))
      else {
        expect(first.err).toContain(`plants: ${failure}\n`)
        const [, given = ''] = /[Rr]un it again with: (.*)\n/.exec(first.err) ?? []
        expect(given).toBe(hint)
        const { code } = await user.import(['sheet.csv', ...flags, ...given.split(' ')])
        expect(code).toBe(expected.length > 1 ? 0 : 6)
      }
      expect((await user.list()).split('\n')).toEqual(expected)
    })
  },
)
