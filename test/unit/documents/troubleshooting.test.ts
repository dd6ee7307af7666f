import { expect, test } from 'vitest'
import { pages } from '../../helpers/expect/documents.js'
import { listSourceFiles, readSource } from '../../helpers/expect/source.js'

test('every message of the page about troubleshooting is one of the program', () => {
  const page = pages.get('docs/troubleshooting.md') ?? ''
  const messages = Array.from(page.matchAll(/^\| `([^`]+)` \|/gm), ([, message = '']) => message)
  // A transcript has the sentences that the program puts together.
  const names = ['import.txt', 'session.txt', 'usage.txt']
  const files = names.map((name) => `test/transcripts/${name}`)
  const source = [...listSourceFiles('src'), ...files].map(readSource).join('\n')
  // Names of files, ids and quoted words differ from one message to the next.
  const parts = messages.flatMap((message) => message.split(/\b[A-Z]{2,}\b(?!-)|\d+|"[^"]*"/))
  const fixed = parts.map((part) => part.trim()).filter((part) => part.length > 3)
  expect(messages.length).toBeGreaterThan(15)
  expect(fixed.filter((part) => !source.includes(part))).toEqual([])
})
