import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** The pages of the documentation, by their paths from the root. */
export const pages: ReadonlyMap<string, string> = new Map(
  [
    'README.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'SECURITY.md',
    ...readdirSync(join(root, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .toSorted()
      .map((name) => `docs/${name}`),
  ].map((path) => [path, readFileSync(join(root, path), 'utf8')]),
)

/** The pages in the order in which somebody reads them: README, then as its last table lists them. */
export const readingOrder: ReadonlySet<string> = new Set(['README.md', ...listedPages(), ...pages.keys()])

function listedPages(): string[] {
  const [, list = ''] = pages.get('README.md')?.split('\n## Documentation\n') ?? []
  return Array.from(list.matchAll(/\]\((docs\/[^)#]+\.md)\)/g), ([, path = '']) => path)
}

/** All of them, one after the other. */
export const documentation = [...pages.values()].join('\n')

/** The addresses in a text that lead nowhere (RFC 2606). https://plants.example.com is the reader's own service. */
export function placeholders(text: string): string[] {
  return [...text.matchAll(/https?:\/\/[\w.-]+\.(?:example|invalid|test)(?![\w-]|\.\w)/g)].map(([address]) => address)
}

/** A block between two fences. */
export interface Block {
  /** `sh` is run; `console` is run, and shows what its commands print; anything else is text */
  language: string
  text: string
}

/** The blocks of a page in their order. */
export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({ language, text }))
}

/** Whether a block belongs to the development of the program: it uses npm, and is not run by a test. */
export function usesNpm({ text }: Block): boolean {
  return /^npm /m.test(text)
}

/** The rows of the first table with these titles, without its marks. */
export function tableAt(titles: string): string[][] {
  const start = documentation.indexOf(`\n${titles}`)
  if (start === -1) throw new Error(`No page has the table ${titles}`)
  const [rows = ''] = documentation.slice(start + 1).split('\n\n')
  return rows
    .replaceAll('`', '')
    .split('\n')
    .slice(2)
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim()))
}
