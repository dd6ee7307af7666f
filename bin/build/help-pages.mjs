import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const id = '\0help-pages'

/**
 * Bundles the pages for users as a `Map` by their names, in the order in which `docs/README.md`
 * links them. The list of all options is not among them, because the help of each command has its
 * own.
 */
export const helpPages = {
  name: 'help-pages',
  resolveId: (source) => (source.endsWith('/docs?pages') ? id : undefined),
  load: (module) =>
    module === id ? `export default new Map(${JSON.stringify(readPages())})` : undefined,
}

function readPages() {
  const links = readFile('docs/README.md').matchAll(/\]\((?!options)([\w-]+)\.md\)/g)
  return Array.from(links, ([, name]) => [name, readFile(`docs/${name}.md`)])
}

function readFile(path) {
  return readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
}
