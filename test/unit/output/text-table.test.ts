import { expect, test } from 'vitest'
import { formatTable } from '../../../src/output/text-table.js'

/** The rows of a table on a terminal, with a second column that shows where the first one ends. */
function rowsOf(names: string[], columns: number): string[] {
  const style = { faint: String }
  const table = formatTable(['NAME', 'TAG'], (name: string) => [name, '|'], style, {
    isTerminal: true,
    columns,
  })
  return table(names).split('\n').slice(1, -1)
}

test('the width of a column is that of its cells on a terminal', () => {
  const names = [
    'Rose',
    'Färn',
    'Ёлка',
    'e\u0301e\u0301e\u0301e\u0301',
    '花園',
    '한국',
    '🌱🍀',
    '👩‍🌾❤️',
  ]
  expect(rowsOf(names, 80)).toEqual(names.map((name) => `${name}  |`))
})

test.each([
  { name: 'Boston fern', shown: 'Bosto…' },
  { name: 'Папоротник', shown: 'Папор…' },
  { name: '花園の木バラ', shown: '花園… ' },
  { name: '𠀀𠀁𠀂𠀃', shown: '𠀀…   ' },
  { name: '🌱🌻🍀🌲', shown: '🌱🌻… ' },
  { name: '👩‍🌾👩‍🌾👩‍🌾👩‍🌾', shown: '👩‍🌾👩‍🌾… ' },
])(
  'the cell $name is truncated to $shown at the end of its column, not within a character',
  ({ name, shown }) => {
    expect(rowsOf([name], 11)).toEqual([`${shown}  |`])
  },
)
