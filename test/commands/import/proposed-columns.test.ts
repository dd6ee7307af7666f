import { expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { buildRows, buildWorkbook } from '../../helpers/sandbox/workbook.js'

// The hint about columns that are not found, which proposes what the dialogue does, is followed to
// the letter.

/** Reads the options that the hint names. */
function readOptions(err: string): string[] {
  const [, options = ''] = /Without one, add (.*)\n$/.exec(err) ?? []
  const words = options.match(/'[^']*'|\S+/g) ?? []
  return words.map((word) => word.replaceAll("'", ''))
}

const sheets = {
  Notes: buildRows(['Read me']),
  Trees: buildRows(['Oak', 'sun', '3'], ['Elm', 'shade', '3']),
}

test.each<{ title: string; content: string | Uint8Array; file?: string; plants: string[] }>([
  {
    title: 'a table without a header, whose quantities are no ids',
    content: 'Fern,shade,12\nMoss,shade,4\nAloe,dry,7\n',
    plants: ['1 Fern shade', '2 Moss shade', '3 Aloe dry'],
  },
  {
    title: 'a table of names and quantities',
    content: 'Fern,12\nMoss,4\nAloe,7\n',
    plants: ['1 Fern', '2 Moss', '3 Aloe'],
  },
  {
    title: 'a table without a header, whose first column has ids',
    content: '12,Fern\n4,Moss\n7,Aloe\n',
    plants: ['4 Moss', '7 Aloe', '12 Fern'],
  },
  {
    title: 'a table of R, whose first column has no name',
    content: '"";"Family"\n"Fern";"Polypodiaceae"\n"Moss";"Bryaceae"\n',
    plants: ['1 Fern Polypodiaceae', '2 Moss Bryaceae'],
  },
  {
    title: 'a table whose first column has no name and is not the name',
    content: ';genus;family\nFern_a;Fern;Polypodiaceae\nMoss_b;Moss;Bryaceae\n',
    plants: ['1 Fern Polypodiaceae', '2 Moss Bryaceae'],
  },
  {
    title: 'a table without a header, but with decimal numbers',
    content: 'Red Maple,Acer rubrum,40.5125,-75.7820\nOak,Quercus robur,40.5126,-75.7821\n',
    plants: ['1 Red Maple Acer rubrum', '2 Oak Quercus robur'],
  },
  {
    title: 'a table without a header, but with numbers that repeat',
    content: 'Red Maple,tree,4,yes\nHazel,bush,5,no\nOak,tree,5,yes\n',
    plants: ['1 Red Maple', '2 Hazel', '3 Oak'],
  },
  {
    title: 'genera and species without a header',
    content: '7,Acer,rubrum,Sapindaceae\n8,Quercus,robur,Fagaceae\n',
    plants: ['7 Acer rubrum Sapindaceae', '8 Quercus robur Fagaceae'],
  },
  {
    title: 'a table with a column of groups, which repeat',
    content:
      'Plant;Size;Nursery\nFern;9 cm;North\nMoss;5 cm;North\nAloe;2 l;South\nIvy;1 l;South\n',
    plants: ['1 Fern North', '2 Moss North', '3 Aloe South', '4 Ivy South'],
  },
  {
    title: 'a table of names, with a delimiter at the end of each line',
    content: 'Beech,\nAsh,\n',
    plants: ['1 Beech', '2 Ash'],
  },
  {
    title: 'a table of names',
    content: 'Fern\nMoss\n',
    plants: ['1 Fern', '2 Moss'],
  },
  {
    title: 'a table whose columns have other names, one of them twice',
    content: 'Common name;Bed;Bed\nFern;North;x\nMoss;South;y\n',
    plants: ['1 Fern North', '2 Moss South'],
  },
  {
    title: 'a sheet without a header, which is not the first',
    content: buildWorkbook({ sheets }),
    file: 'list.xlsx',
    plants: ['1 Oak sun', '2 Elm shade'],
  },
  {
    title: 'JSON with other keys',
    content: '[{"plantId":4,"plantName":"Fern","pos":{"x":1}},{"plantId":5,"plantName":"Moss"}]',
    file: 'list.json',
    plants: ['4 Fern', '5 Moss'],
  },
])('the hint about the columns leads to the plants of $title', async (example) => {
  const { content, file = 'list.csv', plants } = example
  const user = new ImportSandbox()
  user.write(file, content)
  const { code, err } = await user.import(file)
  expect(code).toBe(2)
  expect(await user.import([file, ...readOptions(err)])).toMatchObject({ created: plants.length })
  const stored = (await user.run('list -o tsv')).out.trimEnd().split('\n').slice(1)
  expect(stored.map((line) => line.replaceAll('\t', ' ').trimEnd())).toEqual(plants)
})

test('--map joins two columns that --columns calls a name by their numbers', async () => {
  const user = new ImportSandbox()
  user.write('list.csv', '7,Acer,rubrum,Sapindaceae\n')
  const command = 'list.csv --columns id,name,name,tag'
  const { code, err } = await user.import(command)
  expect(code).toBe(2)
  expect(err).toContain('--map name=NUMBER')
  expect(await user.import(`${command} --map name=2,name=3`)).toMatchObject({ created: 1 })
  expect(await user.list()).toBe('{"id":7,"name":"Acer rubrum","tag":"Sapindaceae"}\n')
})

test('the note about a guessed header names --columns with a place for each cell', async () => {
  const user = new ImportSandbox()
  user.write('list.csv', 'Fern,shade,12\nMoss,sun,4\n')
  const { err } = await user.import('list.csv --map name=1,tag=2 --by-name --dry-run')
  expect(err).toContain('use --columns name,tag, instead of --map')
})

test('each record of a list without ids is a plant, however often its name occurs', async () => {
  const user = new ImportSandbox()
  user.write('list.csv', 'Name,Family\nOak,Fagaceae\nFern,Poly\nOak,Fagaceae?\nMoss,Bryaceae\n')
  const { err } = await user.import('list.csv')
  const options = readOptions(err)
  expect(options).toEqual(['--map', 'tag=Family', '--by-name'])
  expect(await user.import(['list.csv', ...options])).toMatchObject({ code: 0, created: 4 })
  expect(await user.import(['list.csv', ...options])).toMatchObject({ code: 0, skipped: 4 })
})

test('a name that occurs twice does not reject the next month of a list without ids', async () => {
  const user = new ImportSandbox()
  const options = '--map tag=Family --by-name'
  user.write('list.csv', 'Name,Family\nFern,Poly\nMoss,Bry\nAloe,Asph\nFern,Poly\n')
  expect(await user.import(`list.csv ${options}`)).toMatchObject({ code: 0, created: 4 })
  user.write('list.csv', 'Name,Family\nAsh,Ole\nAloe,Asph\nFern,Poly\nMoss,Bry\nFern,Poly\n')
  const result = await user.import(`list.csv ${options}`)
  expect(result).toMatchObject({ code: 0, created: 1, skipped: 4 })
})
