import { expect, test } from 'vitest'
import { runPlants } from '../../helpers/run.js'

test.each([
  ['', '/usr/bin/zsh', 'completion needs a shell: bash, zsh, fish or powershell', 'zsh'],
  ['', undefined, 'completion needs a shell: bash, zsh, fish or powershell', 'bash'],
  ['cmd', '/bin/fish', 'There is no completion for cmd, only for bash, zsh, fish and powershell', 'fish'],
  ['\u001b[2J', '/bin/tcsh', 'There is no completion for \\u{1b}[2J, only for bash, zsh, fish and powershell', 'bash'],
])('a shell that is none is refused: %j, in %s', async (shell, own, message, example) => {
  const hint = `For example: plants completion ${example}. How to install it: plants completion --help`
  const result = await runPlants(['completion', ...(shell === '' ? [] : [shell])], { env: own === undefined ? {} : { SHELL: own } })
  expect(result).toEqual({ code: 2, out: '', err: `plants: ${message}\n  ${hint}\n` })
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
