// Prints the size of each module in KB, beside its budget in docs/architecture.md (a row such as
// "| `src/server` | 56 KB |") if it has one: npm run house
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
const rows = page.matchAll(/^\| `(?<folder>[\w/]+)` \| (?<budget>[\d.]+) KB \|$/gm)
const budgets = new Map(Array.from(rows, ({ groups }) => [groups.folder, groups.budget]))

const foldersIn = (folder) =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`)

function sizeOf(folder) {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.reduce((total, file) => total + statSync(join(file.parentPath, file.name)).size, 0)
}

for (const folder of [
  'src',
  ...foldersIn('src'),
  ...foldersIn('src/stores'),
  'test',
  'bench',
  'bin',
]) {
  const size = (sizeOf(folder) / 1000).toFixed(1)
  const budget = budgets.get(folder)
  const ofBudget = budget === undefined ? '' : ` of ${budget}`
  process.stdout.write(`${folder.padEnd(20)}${size.padStart(8)}${ofBudget}\n`)
}
