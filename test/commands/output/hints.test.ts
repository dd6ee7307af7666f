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

test.skipIf(isWindows)('each word that a hint quotes is one word for a shell (needs sh)', () => {
  const { home } = new Sandbox()
  const command = `printf '<%s>' ${hostile.map((text) => quoteWord(text)).join(' ')}`
  const { stdout } = spawnSync('/bin/sh', ['-c', command], { cwd: home, encoding: 'utf8' })
  expect(stdout).toBe(hostile.map((text) => `<${text}>`).join(''))
})

test.skipIf(isWindows)(
  'each path in the command of a hint is one word for a shell (needs sh)',
  async () => {
    const [user, name] = [new Sandbox(), "it's; touch pwned"]
    await user.run(['create', '--id', '1', '--name', 'x', `--store=./${name}.db`])
    const missing = await user.run(['delete', '7', '--yes', `--store=./${name}.db`])
    expect(missing.err).toContain(`plants list --store ${quoteWord(`./${name}.db`)}\n`)
    const unmade = await user.run(['export', `./${name}/a.csv`, '--store', `./${name}.db`])
    expect(unmade.err).toContain(`mkdir -p ${quoteWord(join(user.home, name))}\n`)
  },
)

test.each([
  {
    text: 'C:\\Users\\ann\\plants.db',
    posix: "'C:\\Users\\ann\\plants.db'",
    windows: 'C:\\Users\\ann\\plants.db',
  },
  { text: 'C:\\My plants', posix: "'C:\\My plants'", windows: '"C:\\My plants"' },
  { text: "$Ann's", posix: "'$Ann'\\''s'", windows: '"$Ann\'s"' },
  { text: 'id,name', posix: 'id,name', windows: '"id,name"' }, // PowerShell would make a list of it
  { text: '@plants', posix: '@plants', windows: '"@plants"' },
])(
  'the word $text is quoted as $posix for a POSIX shell, and as $windows on Windows',
  ({ text, posix, windows }) => {
    expect(quoteWord(text, { isWindows: false })).toBe(posix)
    expect(quoteWord(text, { isWindows: true })).toBe(windows)
  },
)
