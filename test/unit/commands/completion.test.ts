import { expect, test } from 'vitest'
import { runPlants } from '../../helpers/run.js'
import { refusal } from '../../helpers/world.js'

test.each([
  [['completion'], 'completion needs a shell', 'Usage: plants completion <shell>. See: plants completion --help'],
  [['completion', 'cmd'], 'shell must be one of bash, zsh, fish, but was "cmd"', undefined],
])('a shell that is none is refused: %j', async (argv, message, hint) => {
  expect(await runPlants(argv)).toEqual(refusal(message, hint))
})
