import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { quoteWord } from '../../../src/platform/shell.js'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'

const hostile = [
  'x;touch pwned',
  "it's; touch pwned; '",
  '$(touch pwned)`touch pwned`',
  '-x & touch pwned',
  '"|touch pwned|"',
  "x\n'; touch pwned; '",
  '',
]

test.skipIf(isWindows)('a word of a command in a hint is one word for a shell (needs sh)', () => {
  const { home } = new Sandbox()
  const command = `printf '<%s>' ${hostile.map((text) => quoteWord(text)).join(' ')}`
  const { stdout } = spawnSync('/bin/sh', ['-c', command], { cwd: home, encoding: 'utf8' })
  expect(stdout).toBe(hostile.map((text) => `<${text}>`).join(''))
})

test.skipIf(isWindows)('the paths in the commands of hints are such words (needs sh)', async () => {
  const [user, name] = [new Sandbox(), "it's; touch pwned"]
  await user.run(['create', '--id', '1', '--name', 'x', `--store=./${name}.db`])
  const missing = await user.run(['delete', '7', '--yes', `--store=./${name}.db`])
  expect(missing.err).toContain(`plants list --store ${quoteWord(`./${name}.db`)}\n`)
  const unmade = await user.run(['export', `./${name}/a.csv`, '--store', `./${name}.db`])
  expect(unmade.err).toContain(`mkdir -p ${quoteWord(join(user.home, name))}\n`)
})

test.each([
  ['C:\\Users\\ann\\plants.db', "'C:\\Users\\ann\\plants.db'", 'C:\\Users\\ann\\plants.db'],
  ['C:\\My plants', "'C:\\My plants'", '"C:\\My plants"'],
  ["$Ann's", "'$Ann'\\''s'", '"$Ann\'s"'],
  ['id,name', 'id,name', '"id,name"'], // PowerShell would make a list of it
  ['@plants', '@plants', '"@plants"'],
])('%j is %s for a POSIX shell, and %s on Windows', (text, posix, windows) => {
  expect(quoteWord(text, { isWindows: false })).toBe(posix)
  expect(quoteWord(text, { isWindows: true })).toBe(windows)
})
