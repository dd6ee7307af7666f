import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import figures from '../../../bench/figures.json'
import { render } from '../../../bench/page.mjs'

const docs = join(import.meta.dirname, '../../../docs')
const read = (name: string) => readFileSync(join(docs, name), 'utf8')

test('the page of the benchmarks and its charts show the figures of the last run', () => {
  const { page, charts } = render(read('benchmarks.md'), figures)
  expect(read('benchmarks.md')).toBe(page)
  expect(readdirSync(docs).filter((name) => /^bench-.*\.svg$/.test(name))).toEqual(Object.keys(charts).toSorted())
  for (const [name, svg] of Object.entries(charts)) expect({ name, svg: read(name) }).toEqual({ name, svg })
})

test('a chart of the benchmarks is smaller than 20 KB, and can be read on a light and on a dark page', () => {
  for (const svg of Object.values(render('', figures).charts)) {
    expect(Buffer.byteLength(svg)).toBeLessThan(20_000)
    expect(svg).toContain('<rect width="720"')
  }
})

test('the page of the benchmarks has a table of the figures that a marker names, with three digits of each', () => {
  const marked = (content: string) => `# Title\n<!-- figures: how import, export -->\n${content}<!-- end -->\nText\n`
  const rows = [
    { title: 'plants export', rate: 1_234_567 },
    { title: 'cat', rate: Number.NaN },
    { title: 'sqlite3', rate: 500_000 },
  ]
  const { page } = render(marked('an old table\n'), {
    ...figures,
    how: { import: 'Medians of 3 rounds' },
    export: { title: 'Export', rows },
  })
  expect(page).toBe(
    marked(
      [
        '\nMedians of 3 rounds.\n',
        '|Export|rows/s|× first row|',
        '|---|--:|--:|',
        '|plants export|1,230,000|1|',
        '|cat|-|-|',
        '|sqlite3|500,000|0.405|\n\n',
      ].join('\n'),
    ),
  )
})
