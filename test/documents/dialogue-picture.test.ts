import { expect, test } from 'vitest'
import { drawSession } from '../helpers/expect/session-picture.js'
import { bin, withoutCache } from '../helpers/sandbox/process.js'
import { Sandbox } from '../helpers/sandbox/sandbox.js'
import { Screen } from '../helpers/sandbox/screen.js'
import { openTerminal } from '../helpers/sandbox/terminal.js'
import { buildRows, buildWorkbook } from '../helpers/sandbox/workbook.js'

/** The sheet of docs/my-first-list.md. */
const sheet = buildRows(
  ['No', 'Common name', 'Bed', 'Price'],
  ['31', 'Rose', 'South', '12.50'],
  ['32', 'Lavender', 'South', '4.90'],
  ['33', 'Fern', 'North', '3.50'],
)

test('the picture of an import shows the terminal at the last question', async () => {
  const user = new Sandbox()
  user.write('list.xlsx', buildWorkbook({ sheets: { Plants: sheet } }))
  // Colours as of the terminal of a person, whatever the environment of the test is.
  const env = { ...user.env, ...withoutCache, FORCE_COLOR: '1' }
  const args = ['import', 'list.xlsx', '-s', 'garden.db']
  const session = openTerminal(bin, args, user.home, env, { columns: 90 })
  await session.answer(['the name?', '\r'], ['the id?', '\r'], ['the tag?', 'Bed\r'])
  await session.waitForText('Import 3 plants into ')
  await session.waitForText('select')
  const { styledLines } = new Screen(90, session.screen)
  session.type('\x1b')
  expect((await session.ended).code).toBe(130)
  const lines = styledLines.map((line) => line.replaceAll(`${user.home}/`, ''))
  await expect(
    drawSession([`tty$ plants ${args.join(' ')}`, ...lines].join('\n')),
  ).toMatchFileSnapshot('../../docs/import.svg')
})
