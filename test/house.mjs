// Measures how the sources are divided: npm run house [-- FOLDER], where FOLDER holds a src.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const root = resolve(process.argv[2] ?? '.', 'src')
const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.d.ts'),
)
const files = new Map(
  names.toSorted().map((name) => [name, readFileSync(join(root, name), 'utf8')]),
)

const imports = [...files].flatMap(([file, text]) =>
  [...text.matchAll(/(?:from|import\() ?'(\.[^']+)\.js'/g)].map(([, path]) => ({
    file,
    target: `${join(dirname(file), path)}.ts`,
  })),
)
const arrows = unique(
  imports.map(({ file, target }) => `${dirname(file)} -> ${dirname(target)}`),
).filter((arrow) => {
  const [from, to] = arrow.split(' -> ')
  return from !== to
})
const rooms = unique(names.map((name) => dirname(name)))
const importers = new Map(
  names.map((name) => [
    name,
    new Set(imports.filter(({ target }) => target === name).map(({ file }) => file)),
  ]),
)
const types = new Map()
for (const [file, text] of files)
  for (const [, name] of text.matchAll(/^(?:export )?(?:interface|type|class) (\w+)/gm))
    types.set(name, [...(types.get(name) ?? []), file])
const lines = [...files.values()].map((text) => text.split('\n').length - 1)

const report = {
  rooms: rooms.length,
  files: files.size,
  lines: sum(lines),
  'lines of a file, median': median(lines),
  'files of at most 30 lines': lines.filter((count) => count <= 30).length,
  'files with one importer': [...importers.values()].filter(({ size }) => size === 1).length,
  'most files in a room': Math.max(
    ...rooms.map((room) => names.filter((name) => dirname(name) === room).length),
  ),
  'arrows between rooms': arrows.length,
  'type names used twice or more': [...types.values()].filter((uses) => uses.length > 1).length,
}
for (const [what, value] of Object.entries(report))
  print(`${what.padEnd(34)}${String(value).padStart(8)}`)
for (const [name, uses] of types) if (uses.length > 1) print(`  type ${name}: ${uses.join(', ')}`)

function print(line) {
  process.stdout.write(`${line}\n`)
}

function unique(values) {
  return [...new Set(values)]
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0)
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}
