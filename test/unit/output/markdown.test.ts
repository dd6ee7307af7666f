import { expect, test } from 'vitest'
import { formatMarkdown } from '../../../src/output/markdown.js'

const page = `# First list

A [list](list.md) of **plants**, as \`plants list\` prints it on a terminal.

<!-- After the release:
\`\`\`text
npm install
\`\`\`
-->

![A picture](list.svg)

## Steps

1. Write it:

   \`\`\`sh
   printf 'id,name\\n1,A name that is longer than the line\\n' > list.csv

   plants import list.csv
   \`\`\`

   Then read what the command has printed.
- One item, which needs two lines of its page.

### Columns

| name | what it is |
|---|---|
| \`a \\| b\` | one of two |
| id | a number of up to nineteen digits |
`

const formatLink = (label: string, target: string) => `${label} (see\u00a0${target})`

test('a page is text of 40 columns, in which only code is wider', () => {
  expect(formatMarkdown(page, 40, formatLink)).toBe(`First list
==========

A list (see list.md) of plants, as
\`plants list\` prints it on a terminal.

Steps
-----

1. Write it:

     printf 'id,name\\n1,A name that is longer than the line\\n' > list.csv

     plants import list.csv

   Then read what the command has
   printed.
- One item, which needs two lines of its
  page.

Columns
~~~~~~~

name     what it is
-------  -------------------------------
\`a | b\`  one of two
id       a number of up to nineteen
         digits
`)
})

test('a table whose columns would be too narrow is a list of its records', () => {
  const table = `| name | a | b |
|---|---|---|
| id | a number of up to nineteen digits | |
| tag | | a text |
`
  expect(formatMarkdown(table, 28, formatLink)).toBe(`id
  a: a number of up to
  nineteen digits

tag
  b: a text
`)
})
