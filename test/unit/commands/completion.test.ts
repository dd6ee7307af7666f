import { expect, test } from 'vitest'
import { runPlants } from '../../helpers/run.js'
import { refusal } from '../../helpers/user.js'

test.each([
  [['completion'], 'completion needs a shell', 'See: plants completion --help'],
  [['completion', 'cmd'], 'shell must be one of bash, zsh, fish, powershell, but was "cmd"', undefined],
])('a shell that is none is refused: %j', async (argv, message, hint) => {
  expect(await runPlants(argv)).toEqual(refusal(message, hint))
})

test('the script for PowerShell asks as the others do, and evaluates nothing', async () => {
  const { code, out } = await runPlants(['completion', 'powershell'])
  expect(code).toBe(0)
  expect(out).toMatch(/^Register-ArgumentCompleter -Native -CommandName plants -ScriptBlock \{$/m)
  expect(out).toContain('& $program __complete @start @words 2>$null')
  expect(out).not.toMatch(/Invoke-Expression(?!$)|iex|\\t(?!')|`|\$\{/m)
  const pairs = [...out.replaceAll(/'[^'\n]*'|"[^"\n]*"/g, '').matchAll(/[(){}[\]]/g)].map(([character]) => character)
  const open: string[] = []
  for (const character of pairs) {
    const partner = { ')': '(', '}': '{', ']': '[' }[character]
    if (partner === undefined) open.push(character)
    else expect(open.pop()).toBe(partner)
  }
  expect(open).toEqual([])
})
