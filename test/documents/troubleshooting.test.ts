import { getSystemErrorMap } from 'node:util'
import { expect, test } from 'vitest'
import { pages } from '../helpers/expect/documents.js'
import { listSourceFiles, readSource } from '../helpers/expect/source.js'

test('every message of the page about troubleshooting is one of the program', () => {
  const page = pages.get('docs/troubleshooting.md') ?? ''
  const messages = Array.from(page.matchAll(/^\| `([^`]+)`/gm), ([, message = '']) => message)
  // A transcript has the sentences that the program puts together.
  const names = ['import.txt', 'session.txt', 'stores.txt', 'usage.txt']
  const files = names.map((name) => `test/transcripts/${name}`)
  // These have the reasons that a system and a database give.
  const reasons = Array.from(getSystemErrorMap().values(), ([, reason]) => reason)
  const roleTest = 'test/nightly/postgres/least-privilege.test.ts'
  const sources = [...listSourceFiles('src'), ...files, roleTest].map(readSource)
  const source = [...sources, ...reasons].join('\n')
  // Names of files, ids and quoted words differ from one message to the next, and so does the kind
  // of a file that is no list. A reason follows a colon.
  const parts = messages.flatMap((message) =>
    message.split(/^FILE is (?=an? |prot)|\b[A-Z]{2,}\b(?!-)|\d+|"[^"]*"|: /),
  )
  const fixed = parts.map((part) => part.trim()).filter((part) => part.length > 3)
  expect(messages.length).toBeGreaterThan(10)
  expect(fixed.filter((part) => !source.includes(part))).toEqual([])
})
