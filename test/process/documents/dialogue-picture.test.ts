import { expect, test } from 'vitest'
import { drawSession } from '../../helpers/expect/session-picture.js'
import { bin, withoutCache } from '../../helpers/sandbox/process.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { Screen } from '../../helpers/sandbox/screen.js'
import { openTerminal } from '../../helpers/sandbox/terminal.js'

/** The list of docs/my-first-list.md. */
const list =
  'Nr.;Botanischer Name;Standort\n31;Rosa × alba;Südbeet\n32;Süßkirsche;Böschung\n' +
  '1.033;Gänseblümchen;Obstwiese\n'

/** The command line that the dialogue prints has its place on one line. */
const columns = 110

test('the picture on the page about the first list shows the terminal at the last question', async () => {
  const user = new Sandbox()
  user.write('bestand.csv', Buffer.from(list, 'latin1'))
  // Colours as of the terminal of a person, whatever the environment of the test is.
  const env = { ...user.env, ...withoutCache, PLANTS_STORE: './garden.db', FORCE_COLOR: '1' }
  const session = openTerminal(bin, ['import', 'bestand.csv'], user.home, env, { columns })
  // One id of the list is no integer, so its column is not proposed. It is the second one above.
  const chooseNumbers = `${'\x1b[A'.repeat(2)}\r`
  await session.answer(['Is that right?', '\r'], ['the name?', '\r'])
  await session.answer(['the id?', chooseNumbers], ['the tag?', '\r'])
  await session.waitForText('select')
  await session.waitForText('Import 2 plants into ')
  await session.waitForText('select')
  const { styledLines } = new Screen(columns, session.screen)
  session.type('\x1b')
  expect((await session.ended).code).toBe(130)
  const command = 'tty$ plants import bestand.csv'
  const lines = styledLines.map((line) => line.replaceAll(`${user.home}/`, ''))
  await expect(drawSession([command, ...lines].join('\n'))).toMatchFileSnapshot(
    '../../../docs/my-first-list.svg',
  )
})
