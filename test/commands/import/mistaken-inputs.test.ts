import { expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

// Mistakes that people make when they name an input, or save it with another program.

type Mistake = [args: string[], message: string, hint: string]

test.each<Mistake>([
  [['', '--dry-run'], 'The name of a file to import is empty', 'Give a value, or remove it'],
  [
    ['https://a.example/list.csv'],
    'import reads files, not URLs',
    'Download it, and give the path of the file',
  ],
  [['list.csv', '--columns', ''], '--columns is empty', 'Give a value, or leave the option out'],
  [
    ['list.csv', '--columns', 'ID,,name'],
    'The first row of list.csv is a header, because it has the given names of columns',
    'Leave out --columns',
  ],
  [
    ['kinds.csv', '--map', 'id=Nr', 'name=Kind'],
    'name=Kind could not be read: no such file or directory',
    'Check the name of the file, put a name with spaces in quotes, or use "-" for stdin',
  ],
  [
    ['kinds.csv', '--map', 'id=Nr,name=German', 'Name'],
    'Name could not be read: no such file or directory',
    'Check the name of the file, put a name with spaces in quotes, or use "-" for stdin',
  ],
  [
    ['open.json'],
    'open.json:1: Not JSON: there is no comma or "}" after a value (line 2, column 1)',
    'Correct the input, and run the command again',
  ],
  [
    ['keys.json'],
    'Several keys of keys.json could be the name: "Name", "NAME"',
    'Choose one with --map name=KEY',
  ],
])('an import of %j has an error that ends the matter', async (args, message, hint) => {
  const user = new ImportSandbox()
  user.write('list.csv', 'id,tag,name\n1,wet,Fern\n')
  user.write('kinds.csv', 'Nr,Kind\n1,Fern\n')
  user.write('keys.json', '[{"id":1,"Name":"A","NAME":"B"}]')
  user.write('open.json', '[{"id":1,"name":"Ash"\n]')
  const { err } = await user.run(['import', ...args, '--output', 'text'])
  expect(err).toContain(`plants: ${message}\n  ${hint}\n`)
})

test.each(['a.csv kinds.csv', 'kinds.csv a.csv'])(
  'of the files %s, whose columns differ, nothing is stored',
  async (files) => {
    const user = new ImportSandbox()
    user.write('a.csv', 'id,name\n1,Fern\n')
    user.write('kinds.csv', 'Nr,Kind\n2,Moss\n')
    const { code, err } = await user.import(files)
    expect([code, err]).toEqual([
      2,
      'plants: kinds.csv has no columns "id", "name"\n' +
        '  line 1: "Nr", "Kind"\n' +
        '  On a terminal, the import of a file asks. Without one, add --map id=Nr,name=Kind\n',
    ])
    expect(await user.run('list')).toMatchObject({ out: '' })
    expect(await user.import('kinds.csv --map id=Nr,name=Kind')).toMatchObject({ created: 1 })
  },
)
