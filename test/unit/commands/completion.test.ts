import { expect, test } from 'vitest'
import { runPlants } from '../../helpers/run.js'

test.each([
  ['', '/usr/bin/zsh', 'completion needs a shell: bash, zsh or fish', 'zsh'],
  ['', undefined, 'completion needs a shell: bash, zsh or fish', 'bash'],
  ['powershell', '/bin/fish', 'There is no completion for powershell, only for bash, zsh and fish', 'fish'],
  ['\u001b[2J', '/bin/powershell', 'There is no completion for \\u{1b}[2J, only for bash, zsh and fish', 'bash'],
])('a shell that is none is refused: %j, in %s', async (shell, own, message, example) => {
  const hint = `For example: plants completion ${example}. How to install it: plants completion --help`
  const result = await runPlants(['completion', ...(shell === '' ? [] : [shell])], { env: own === undefined ? {} : { SHELL: own } })
  expect(result).toEqual({ code: 2, out: '', err: `plants: ${message}\n  ${hint}\n` })
})
