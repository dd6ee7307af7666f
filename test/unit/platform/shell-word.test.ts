import { expect, test } from 'vitest'
import { posixWord, windowsWord } from '../../../src/platform/errors.js'

test.each([
  ['plants.db', 'plants.db', 'plants.db'],
  ['C:\\Users\\ann\\plants.db', "'C:\\Users\\ann\\plants.db'", 'C:\\Users\\ann\\plants.db'],
  ['C:\\My plants\\plants.db', "'C:\\My plants\\plants.db'", '"C:\\My plants\\plants.db"'],
  ['C:\\My plants\\', "'C:\\My plants\\'", '"C:\\My plants\\\\"'], // a program takes \\" for a quote
  ["Ann's", "'Ann'\\''s'", '"Ann\'s"'],
  ['5 $ "a"', '\'5 $ "a"\'', '\'5 $ "a"\''],
  ["$Ann's", "'$Ann'\\''s'", "'$Ann''s'"],
  ['id,name', 'id,name', '"id,name"'], // PowerShell would make a list of it
  ['@plants', '@plants', '"@plants"'],
  ['', "''", '""'],
])('%j is %s for a POSIX shell, and %s on Windows', (text, posix, windows) => {
  expect([posixWord(text), windowsWord(text)]).toEqual([posix, windows])
})
