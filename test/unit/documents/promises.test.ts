import { expect, test } from 'vitest'
import { promises } from '../../promises.mjs'

test('each rule of the contract has tests, and each of its keys names some', () => {
  const rules = promises()
  expect(rules.length).toBeGreaterThan(15)
  expect(rules.filter(({ tests, wrongKeys }) => tests.length === 0 || wrongKeys.length > 0)).toEqual([])
})

test('a rule without a key, and a key that names no test, are found', () => {
  const page = `| part | rule |
|---|---|
| size | up to 1 MiB |
| <!--no-such-title,promises-->\`id\` | an integer |

- <!--promise-->**A rule** is a [sentence](page.md). Another
`
  expect(promises(page)).toEqual([
    { rule: 'size', tests: [], wrongKeys: [] },
    { rule: '`id`', tests: ['unit/documents/promises.test.ts'], wrongKeys: ['no-such-title'] },
    { rule: 'A rule is a sentence', tests: [], wrongKeys: ['promise'] },
  ])
})
