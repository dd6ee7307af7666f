import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

// A program that writes a list without ids into a pipe dies in the middle. Nobody can tell a list
// that was cut at the end of a row, or in a cell, from a shorter one. The whole list then stores
// nothing twice.

const rows = ['Aloe,South', 'Aloe,North', '"Rosa, wild",Pond']
const csv = `name,tag\n${rows.join('\n')}\n`
const ndjson = '{"name":"Aloe","tag":"South"}\n{"name":"Aloe","tag":"North"}\n'
const packed = gzipSync(csv)

interface Row {
  where: string
  format: 'csv' | 'ndjson'
  text: string | Buffer
  /** What arrives ends before this text, or has this length. */
  end: string | number
  code: number
  plants: string[]
}

const table: Row[] = [
  { where: 'between rows', end: 'Aloe,North', code: 0, plants: ['1,Aloe,South'] },
  { where: 'in a tag', end: 'rth', code: 0, plants: ['1,Aloe,South', '2,Aloe,No'] },
  { where: 'behind a name', end: ',North', code: 0, plants: ['1,Aloe,South', '2,Aloe,'] },
  { where: 'in a name', end: 'oe,North', code: 0, plants: ['1,Aloe,South', '2,Al,'] },
  { where: 'in quotes', end: 'wild', code: 2, plants: [] },
].map((row) => ({ ...row, format: 'csv', text: csv }))
table.push(
  {
    where: 'in JSON',
    format: 'ndjson',
    text: ndjson,
    end: 'rth',
    code: 6,
    plants: ['1,Aloe,South'],
  },
  { where: 'in gzip', format: 'csv', text: packed, end: packed.length - 9, code: 2, plants: [] },
)

test.each(table)(
  'a list without ids from a pipe that was cut $where is stored once',
  async (row) => {
    const user = new ImportSandbox()
    const { format, text, end } = row
    const command = `- --format ${format} --by-name --if-exists update`
    const list = async () => (await user.run('list -o csv')).out.split('\n').slice(1, -1)
    const length = typeof end === 'number' ? end : text.indexOf(end)
    const cut = await user.import(command, text.slice(0, length))
    expect([cut.code, await list()]).toEqual([row.code, row.plants])
    for (const time of ['first', 'again']) {
      const whole = await user.import(command, text)
      expect([time, whole.code]).toEqual([time, 0])
      // A plant whose name was cut is one that the list lacks.
      const plants = (await list()).filter((plant) => plant !== '2,Al,')
      expect(plants).toHaveLength(format === 'csv' ? 3 : 2)
    }
  },
)
