import { readFileSync } from 'node:fs'

/** Bundles a file that is imported with `?raw` as its text, as Vite does for the tests. */
export const rawText = {
  name: 'raw-text',
  load: (id) =>
    id.endsWith('?raw')
      ? `export default ${JSON.stringify(readFileSync(id.slice(0, -'?raw'.length), 'utf8'))}`
      : undefined,
}
