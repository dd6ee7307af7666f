import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { listedCommands } from '../src/cli/commands/index.js'
import { findMessages } from './helpers/expect/messages.js'
import {
  findExports,
  findImports,
  type Import,
  listSourceFiles,
  readSource,
} from './helpers/expect/source.js'

const files = listSourceFiles('src')
const imports = findImports(files)

/**
 * The files that may import each package. They are few, so that a change of package is a change of
 * one file or module.
 */
const allowedImporters: Record<string, RegExp> = {
  '@inquirer/prompts': /^src\/cli\/prompts\.ts$/,
  '@photostructure/sqlite': /^src\/platform\/sqlite\.ts$/,
  chalk: /^src\/output\//,
  commander: /^src\/cli\//,
  conf: /^src\/config\//,
  'env-paths': /^src\/platform\/io\.ts$/,
  execa: /^src\/(auth\/token-command|cli\/pager)\.ts$/,
  'fast-string-truncated-width': /^src\/output\/text-table\.ts$/,
  'iconv-lite': /^src\/formats\/encoding\.ts$/,
  pg: /^src\/stores\/postgres\//,
  'pg-copy-streams': /^src\/stores\/postgres\//,
  'prom-client': /^src\/server\/admin\.ts$/,
  'proxy-from-env': /^src\/platform\/io\.ts$/,
  saxes: /^src\/formats\/workbook\/xml\.ts$/,
  yauzl: /^src\/formats\/workbook\/archive\.ts$/,
  yazl: /^src\/export\/workbook\.ts$/,
  zod: /^src\/(plant|config)\//,
}

/** What each module may import; docs/architecture.md says what is in it. */
const modules: Record<string, string[]> = {
  main: ['cli', 'platform', 'errors'],
  cli: [
    'config',
    'auth',
    'output',
    'import',
    'export',
    'server',
    'fields',
    'formats',
    'stores',
    'plant',
    'platform',
    'errors',
  ],
  config: ['stores', 'plant', 'platform', 'errors'],
  auth: ['config', 'stores', 'platform', 'errors'],
  output: ['formats', 'stores', 'plant', 'platform', 'errors'],
  import: ['fields', 'formats', 'stores', 'plant', 'platform', 'errors'],
  export: ['formats', 'stores', 'plant', 'platform', 'errors'],
  server: ['stores', 'plant', 'platform', 'errors'],
  fields: ['formats', 'stores', 'plant', 'platform', 'errors'],
  formats: ['plant', 'platform', 'errors'],
  stores: ['plant', 'platform', 'errors'],
  plant: ['platform', 'errors'],
  platform: ['errors'],
  errors: [],
}

test('a module imports only modules below it, and no kind of store imports another', () => {
  const wrong = imports.filter(({ file, target }) => {
    if (!target.startsWith('src/')) return false
    const kinds = [file, target].map((path) => /^src\/stores\/(\w+)\//.exec(path)?.[1])
    if (kinds[0] && kinds[1] && kinds[0] !== kinds[1]) return true
    return (
      parseModule(file) !== parseModule(target) &&
      !modules[parseModule(file)]?.includes(parseModule(target))
    )
  })
  expect(wrong).toEqual([])
})

test('docs/architecture.md lists each module', () => {
  const rows = readSource('docs/architecture.md').matchAll(/^- `src\/(\w+)(?:\.ts)?`: /gm)
  expect(Array.from(rows, ([, module]) => module).toSorted()).toEqual(
    Object.keys(modules).toSorted(),
  )
})

test('no file imports itself through other files, not even a type', () => {
  expect(findCycles(imports)).toEqual([])
})

test('no folder imports itself through other folders', () => {
  // These choose among kinds, and stand next to what the kinds share.
  const choosers = ['src/stores/kinds.ts', 'src/formats/detect.ts']
  const others = imports.filter(({ file }) => !choosers.includes(file))
  const folders = others.map(({ file, target }) => ({
    file: dirname(file),
    target: dirname(target),
  }))
  const inside = folders.filter(({ file, target }) => file !== target && target.startsWith('src/'))
  expect(findCycles(inside, [...new Set(inside.map(({ file }) => file))])).toEqual([])
})

test('only the folder of a kind of store compares its scheme', () => {
  const pattern = /\bscheme ?[!=]==|\bcase '(?:http|postgres|sqlite)'/
  const others = files.filter((file) => !/^src\/stores\/\w+\//.test(file))
  expect(others.filter((file) => pattern.test(readSource(file)))).toEqual([])
})

test('a package is imported only where it is allowed', () => {
  const packages = imports.filter(
    ({ target }) => !/^src\/|^node:|^(?:docs\?pages|package\.json)$/.test(target),
  )
  const wrong = packages.filter(({ file, target }) => !allowedImporters[target]?.test(file))
  expect(wrong).toEqual([])
})

test('the program imports every file of src', () => {
  const reached = new Set(['src/main.ts'])
  for (const file of reached)
    for (const { target } of imports.filter((edge) => edge.file === file)) reached.add(target)
  expect(files.filter((file) => !reached.has(file) && !file.endsWith('.d.ts'))).toEqual([])
})

test('every export is imported by another file', () => {
  const edges = [...imports, ...findImports(listSourceFiles('test'))]
  // bin/plants.js imports the start of the program from the bundle.
  const others = files.filter((file) => file !== 'src/main.ts')
  const unused = others.flatMap((file) => {
    const importers = edges.filter(({ target }) => target === file).map((edge) => edge.file)
    const isImported = (name: string) =>
      importers.some((importer) => RegExp(`\\b${name}\\b`).test(readSource(importer)))
    const names = findExports(readSource(file)).filter((name) => !isImported(name))
    return names.map((name) => `${file}: ${name}`)
  })
  expect(unused).toEqual([])
})

test('only platform and main use the process and the console', () => {
  const usesProcess =
    /\bprocess\.(?!versions\b|platform\b|arch\b|getBuiltinModule\b)\w+|\bconsole\./
  const others = files.filter((file) => !/^src\/(platform\/|main\.ts)/.test(file))
  expect(others.filter((file) => usesProcess.test(readSource(file)))).toEqual([])
})

test('a message of a module below cli names no option, command or environment variable', () => {
  const names = [...listedCommands].flatMap(([name, { aliases = [] }]) => [name, ...aliases])
  const commandLineTerms = RegExp(
    `(?<![\\w-])--[a-z][\\w-]*|\\bplants (?:${names.join('|')})\\b|\\bPLANTS_[A-Z_]*`,
    'g',
  )
  // A service sends these messages, too, and its client may be another program.
  const filesBelow = files.filter((name) =>
    /^src\/(stores|fields|formats|import|export|plant|platform|server)\//.test(name),
  )
  const messages = filesBelow.flatMap((file) =>
    findMessages(readSource(file)).map((text) => ({ file, text })),
  )
  expect(messages.length).toBeGreaterThan(50)
  const wrong = messages.map(({ file, text }) => `${file}: ${text.match(commandLineTerms) ?? ''}`)
  expect(wrong.filter((line) => !line.endsWith(': '))).toEqual([])
})

test('only platform and server read the clock themselves', () => {
  const clock = /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bprocess\.(?:uptime|hrtime)\b/
  const others = files.filter((file) => !/^src\/(platform|server)\//.test(file))
  expect(others.filter((file) => clock.test(readSource(file)))).toEqual([])
})

test('no test waits for time to pass', () => {
  const pattern = /\bsetTimeout\(|timers\/promises|\bsleep \d/
  // The timer of waitFor ends a wait that would never end.
  const exempted = ['test/architecture.test.ts', 'test/helpers/sandbox/wait.ts']
  const tests = listSourceFiles('test').filter((file) => !exempted.includes(file))
  expect(tests.filter((file) => pattern.test(readSource(file)))).toEqual([])
})

function parseModule(file: string): string {
  return file.split(/[/.]/)[1] ?? ''
}

/** Finds the files, or the folders, that import themselves through others. */
function findCycles(edges: readonly Import[], nodes = files): string[] {
  return nodes.filter((node) => {
    const reached = new Set(edges.filter(({ file }) => file === node).map(({ target }) => target))
    for (const from of reached)
      for (const { file, target } of edges) if (file === from) reached.add(target)
    return reached.has(node)
  })
}
