// Prints the sizes of the modules beside their budgets in docs/architecture.md, and fails if one is
// over: npm run house
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
// Such as "| `src/cli` without `src/cli/commands/import` | 138 |"
const rows = page.matchAll(/^\| (?<files>`[^|]*`) \| (?<budget>\d+) \|$/gm)

/** @param {string} [list] paths in backticks */
function bytesOf(list = '') {
  const paths = Array.from(list.matchAll(/`([^`]*)`/g), ([, path = '']) => join(root, path))
  return paths.reduce((total, path) => total + bytesIn(path), 0)
}

/** @param {string} path @returns {number} of a file, or of all files in a directory */
function bytesIn(path) {
  const stats = statSync(path)
  if (!stats.isDirectory()) return stats.size
  return readdirSync(path).reduce((total, name) => total + bytesIn(join(path, name)), 0)
}

for (const [, files = '', budget] of rows) {
  const [all, left] = files.split(' without ')
  const size = (bytesOf(all) - bytesOf(left)) / 1000
  const isOver = size > Number(budget)
  if (isOver) process.exitCode = 1
  const figures = `${size.toFixed(1).padStart(6)} of ${String(budget).padStart(3)} KB`
  process.stdout.write(`${figures}${isOver ? ', over' : '      '}  ${files.replaceAll('`', '')}\n`)
}
