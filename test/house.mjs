// Measures how the sources are divided: npm run house [-- FOLDER], where FOLDER holds a src.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

const root = resolve(process.argv[2] ?? '.', 'src')
const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.d.ts'),
)
const files = new Map(names.toSorted().map((name) => [name, readFileSync(join(root, name), 'utf8')]))

const imports = [...files].flatMap(([file, text]) =>
  [...text.matchAll(/(?:from|import\() ?'(\.[^']+)\.js'/g)].map(([, path]) => ({
    file,
    target: `${join(dirname(file), path)}.ts`,
  })),
)
const arrows = unique(imports.map(({ file, target }) => `${dirname(file)} -> ${dirname(target)}`)).filter((arrow) => {
  const [from, to] = arrow.split(' -> ')
  return from !== to
})
const rooms = unique(names.map((name) => dirname(name)))
const importers = new Map(
  names.map((name) => [name, new Set(imports.filter(({ target }) => target === name).map(({ file }) => file))]),
)
const functions = [...files].flatMap(([file, text]) => privateFunctions(file, text))
const types = groupBy(
  [...files].flatMap(([file, text]) => declaredTypes(text).map((name) => ({ name, file }))),
  ({ name }) => name,
)
const lines = [...files.values()].map((text) => text.split('\n').length - 1)
const callers = (pattern) => [...files].filter(([, text]) => pattern.test(text)).length

const report = {
  rooms: rooms.length,
  files: files.size,
  lines: sum(lines),
  'lines of a file, median': median(lines),
  'files of at most 30 lines': lines.filter((count) => count <= 30).length,
  'files with one importer': [...importers.values()].filter(({ size }) => size === 1).length,
  'most files in a room': Math.max(...rooms.map((room) => names.filter((name) => dirname(name) === room).length)),
  'arrows between rooms': arrows.length,
  'rooms in cycles': cyclic(rooms, arrows).length,
  'private functions': functions.length,
  'lines of one, on average': (sum(functions.map(({ length }) => length)) / functions.length).toFixed(1),
  'called once': functions.filter(({ calls }) => calls === 1).length,
  'type names used twice or more': [...types.values()].filter((uses) => uses.length > 1).length,
  'files with kind ===': callers(/\bkind [!=]==/),
  'objects spread into themselves': sum([...files.values()].map((text) => [...text.matchAll(/\.\.\.\{ /g)].length)),
}
for (const [what, value] of Object.entries(report)) print(`${what.padEnd(34)}${String(value).padStart(8)}`)
for (const [name, uses] of types)
  if (uses.length > 1) print(`  type ${name}: ${uses.map(({ file }) => file).join(', ')}`)

/** Functions and private methods that no other file sees, with their lines and how often they are named besides. */
function privateFunctions(file, text) {
  const found = []
  const { program } = parseSync(file, text)
  const exported = new Set(
    program.body.filter(({ type }) => type === 'ExportNamedDeclaration').map(({ declaration }) => declaration),
  )
  const add = (name, { start, end }) => {
    const uses = text.match(new RegExp(`${name.startsWith('#') ? '' : '(?<![\\w#.])'}${name}\\b`, 'g')).length
    found.push({ name, length: text.slice(start, end).split('\n').length, calls: uses - 1 })
  }
  new Visitor({
    FunctionDeclaration(node) {
      if (!exported.has(node)) add(node.id.name, node)
    },
    MethodDefinition(node) {
      if (node.key.type === 'PrivateIdentifier') add(`#${node.key.name}`, node)
    },
  }).visit(program)
  return found
}

function declaredTypes(text) {
  return [...text.matchAll(/^(?:export )?(?:interface|type|class) (\w+)/gm)].map(([, name]) => name)
}

/** The rooms from which a walk along the arrows comes back. */
function cyclic(rooms, arrows) {
  const next = groupBy(
    arrows.map((arrow) => arrow.split(' -> ')),
    ([from]) => from,
  )
  return rooms.filter((room) => {
    const reached = new Set((next.get(room) ?? []).map(([, to]) => to))
    for (const each of reached) for (const [, to] of next.get(each) ?? []) reached.add(to)
    return reached.has(room)
  })
}

function groupBy(values, keyOf) {
  const groups = new Map()
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value])
  return groups
}

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
