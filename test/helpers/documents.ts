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

/** All of them, one after the other. */
export const documentation = [...pages.values()].join('\n')

/** The addresses in a text that lead nowhere (RFC 2606). https://plants.example.com is the reader's own service. */
export function placeholders(text: string): string[] {
  return [...text.matchAll(/https?:\/\/[\w.-]+\.(?:example|invalid|test)(?![\w-]|\.\w)/g)].map(
    ([address]) => address,
  )
}

/** A block between two fences. */
export interface Block {
  /** `sh` is run; `console` is run, and shows what its commands print; anything else is text */
  language: string
  text: string
}

/** The blocks of a page in their order. */
export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text,
  }))
}
