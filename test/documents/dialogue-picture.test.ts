import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { drawSession } from '../helpers/expect/session-picture.js'
import { bin, withoutCache } from '../helpers/sandbox/process.js'
import { Sandbox } from '../helpers/sandbox/sandbox.js'
import { Screen } from '../helpers/sandbox/screen.js'
import { openTerminal } from '../helpers/sandbox/terminal.js'

test('the pictures of the README show an import of the example, and a search', async () => {
  const user = new Sandbox()
  cpSync('examples', join(user.home, 'examples'), { recursive: true })
  // Colours as of the terminal of a person, whatever the environment of the test is.
  const env = { ...user.env, ...withoutCache, FORCE_COLOR: '1', PAGER: '' }
  const start = (args: string[]) => openTerminal(bin, args, user.home, env, { columns: 90 })
  const read = (screen: string) =>
    new Screen(90, screen).styledLines.map((line) => line.replaceAll(`${user.home}/`, ''))

  const importArgs = ['import', 'examples/list.xlsx', '-s', 'garden.db']
  const session = start(importArgs)
  await session.answer(['the name?', '\r'], ['the id?', '\r'], ['the tag?', 'Bed\r'])
  await session.answer(['Import 12 plants into ', '\r'])
  const imported = await session.ended
  const searchArgs = ['list', '--search', 'rose', '-s', 'garden.db']
  const searched = await start(searchArgs).ended
  expect([imported.code, searched.code]).toEqual([0, 0])
  const lines = [
    `^[[2m$^[[22m plants ${importArgs.join(' ')}`,
    ...read(imported.screen),
    `^[[2m$^[[22m plants ${searchArgs.join(' ')}`,
    ...read(searched.screen),
  ]
  for (const theme of ['light', 'dark'] as const)
    await expect(drawSession(lines, theme)).toMatchFileSnapshot(`../../docs/import-${theme}.svg`)
})
