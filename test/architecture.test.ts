import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { listedCommands } from '../src/cli/commands/index.js'
import exemptions from './exemptions.json'
import {
  findExports,
  findFunctionNames,
  findImports,
  hasLongLine,
  type Import,
  lacksVerb,
  listSourceFiles,
  readSource,
} from './helpers/expect/source.js'

const files = listSourceFiles('src')
const imports = findImports(files)

/** Who may import a package: one door each, so that a change of package is a change of one file or module. */
const doors: Record<string, RegExp> = {
  '@inquirer/prompts': /^src\/cli\/prompts\.ts$/,
  '@photostructure/sqlite': /^src\/platform\/sqlite\.ts$/,
  chalk: /^src\/output\//,
  commander: /^src\/cli\//,
  conf: /^src\/config\//,
  'env-paths': /^src\/platform\/io\.ts$/,
  execa: /^src\/(auth\/token-command|cli\/pager)\.ts$/,
  'fast-string-truncated-width': /^src\/output\/text-table\.ts$/,
  'iconv-lite': /^src\/formats\/encoding\.ts$/,
  jschardet: /^src\/formats\/detect-encoding\.ts$/,
  pg: /^src\/stores\/postgres\//,
  'pg-copy-streams': /^src\/stores\/postgres\//,
  'prom-client': /^src\/server\/admin\.ts$/,
  'proxy-from-env': /^src\/platform\/io\.ts$/,
  saxes: /^src\/formats\/workbook\/xml\.ts$/,
  yauzl: /^src\/formats\/workbook\/archive\.ts$/,
  yazl: /^src\/export\/workbook\.ts$/,
  zod: /^src\/(plant|config|import|stores\/http)\//,
}

/** What each module may import; docs/architecture.md has the same table. */
const modules: Record<string, string[]> = {
  main: ['cli', 'platform', 'errors'],
  cli: [
    'config',
    'auth',
    'output',
    'import',
    'export',
    'server',
    'formats',
    'stores',
    'plant',
    'platform',
    'errors',
  ],
  config: ['stores', 'plant', 'platform', 'errors'],
  auth: ['config', 'stores', 'platform', 'errors'],
  output: ['formats', 'stores', 'plant', 'platform', 'errors'],
  import: ['formats', 'stores', 'plant', 'platform', 'errors'],
  export: ['formats', 'stores', 'plant', 'platform', 'errors'],
  server: ['stores', 'plant', 'platform', 'errors'],
  formats: ['plant', 'platform', 'errors'],
  stores: ['plant', 'platform', 'errors'],
  plant: ['platform', 'errors'],
  platform: ['errors'],
  errors: [],
}

test('modules import what is below them, and the kinds of stores not each other', () => {
  const wrong = imports.filter(({ file, target }) => {
    if (!target.startsWith('src/')) return false
    const kinds = [file, target].map((path) => /^src\/stores\/(\w+)\//.exec(path)?.[1])
    if (kinds[0] && kinds[1] && kinds[0] !== kinds[1]) return true
    return (
      moduleOf(file) !== moduleOf(target) && !modules[moduleOf(file)]?.includes(moduleOf(target))
    )
  })
  expect(wrong).toEqual([])
})

test('docs/architecture.md lists what each module may import', () => {
  const rows = readSource('docs/architecture.md').matchAll(
    /^\| `src\/(\w+)(?:\.ts)?` \|[^|]*\|([^|]*)\|$/gm,
  )
  const names = (cell: string) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name)
  const listed = Array.from(rows, ([, module, imported = '']) => [module, names(imported)])
  expect(Object.fromEntries(listed)).toEqual(modules)
})

test('no files import each other in a circle, not even types', () => {
  expect(circles(imports)).toEqual([])
})

test('folders import each other one way', () => {
  // These choose among kinds, and stand next to what the kinds share.
  const choosers = ['src/stores/kinds.ts', 'src/formats/detect.ts']
  const others = imports.filter(({ file }) => !choosers.includes(file))
  const folders = others.map(({ file, target }) => ({
    file: dirname(file),
    target: dirname(target),
  }))
  const inside = folders.filter(({ file, target }) => file !== target && target.startsWith('src/'))
  expect(circles(inside, [...new Set(inside.map(({ file }) => file))])).toEqual([])
})

test('only a kind of store knows its scheme: others ask for a capability, or call a method', () => {
  const pattern = /\bscheme ?[!=]==|\bcase '(?:http|postgres|sqlite)'/
  const others = files.filter((file) => !/^src\/stores\/\w+\//.test(file))
  expect(others.filter((file) => pattern.test(readSource(file)))).toEqual([])
})

test('every package has one door', () => {
  const packages = imports.filter(
    ({ target }) =>
      !target.startsWith('src/') && !target.startsWith('node:') && target !== 'package.json',
  )
  const wrong = packages.filter(({ file, target }) => !doors[target]?.test(file))
  expect(wrong).toEqual([])
})

test('every file is reached from the start', () => {
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

test('the process is touched by platform and main alone', () => {
  const touched = /\bprocess\.(?!versions\b|platform\b|arch\b|getBuiltinModule\b)\w+|\bconsole\./
  const others = files.filter((file) => !/^src\/(platform\/|main\.ts)/.test(file))
  expect(others.filter((file) => touched.test(readSource(file)))).toEqual([])
})

test('a message names no option, command or variable of the command line: a service sends it, too', () => {
  const names = Object.entries(listedCommands).flatMap(([name, { aliases = [] }]) => [
    name,
    ...aliases,
  ])
  const words = RegExp(
    `(?<![\\w-])--[a-z][\\w-]*|\\bplants (?:${names.join('|')})\\b|\\bPLANTS_[A-Z_]*`,
    'g',
  )
  const below = files.filter((name) =>
    /^src\/(stores|formats|import|export|plant|platform|server)\//.test(name),
  )
  const messages = below.flatMap((file) =>
    messagesIn(readSource(file)).map((text) => ({ file, text })),
  )
  expect(messages.length).toBeGreaterThan(50)
  const wrong = messages.map(({ file, text }) => `${file}: ${text.match(words) ?? ''}`)
  expect(wrong.filter((line) => !line.endsWith(': '))).toEqual([])
})

test('every function is named by a verb: no name ends in Of or In, or begins with a participle', () => {
  const names = new Set(files.flatMap((file) => findFunctionNames(readSource(file))))
  expect(names.size).toBeGreaterThan(500)
  expectOnlyExempted([...names].filter(lacksVerb), exemptions.functionsWithoutVerb)
})

test('a name is exported by one file', () => {
  const exported = files.flatMap((file) => findExports(readSource(file)))
  const repeated = exported.filter((name, index) => exported.indexOf(name) !== index)
  // Each file of a command exports the function that defines it.
  const names = new Set(repeated.filter((name) => name !== 'define'))
  expectOnlyExempted([...names], exemptions.namesExportedTwice)
})

test('a line has at most 100 characters, comments included', () => {
  const longFiles = files.filter((file) => hasLongLine(readSource(file)))
  expectOnlyExempted(longFiles, exemptions.filesWithLongLines)
})

test('the clock comes from io', () => {
  const clock = /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bprocess\.(?:uptime|hrtime)\b/
  const others = files.filter((file) => !/^src\/(platform|server)\//.test(file))
  expectOnlyExempted(
    others.filter((file) => clock.test(readSource(file))),
    // A response without a date is measured by the clock of this machine.
    ['src/stores/http/failures.ts'],
  )
})

test('tests wait for events, never for time to pass', () => {
  const pattern = /\bsetTimeout\(|timers\/promises|\bsleep \d/
  const tests = listSourceFiles('test').filter((file) => file !== 'test/architecture.test.ts')
  expect(tests.filter((file) => pattern.test(readSource(file)))).toEqual([])
})

/** Rules that came later than the code have exemptions, which only become fewer: a stale one fails. */
function expectOnlyExempted(found: readonly string[], exempted: readonly string[]): void {
  const unexpected = found.filter((name) => !exempted.includes(name))
  const staleExemptions = exempted.filter((name) => !found.includes(name))
  expect({ unexpected, staleExemptions }).toEqual({ unexpected: [], staleExemptions: [] })
  expect(exempted).toEqual(exempted.toSorted())
}

function moduleOf(file: string): string {
  return file.split(/[/.]/)[1] ?? ''
}

/** The files, or the folders, that lead back to themselves. */
function circles(edges: readonly Import[], nodes = files): string[] {
  return nodes.filter((node) => {
    const reached = new Set(edges.filter(({ file }) => file === node).map(({ target }) => target))
    for (const from of reached)
      for (const { file, target } of edges) if (file === from) reached.add(target)
    return reached.has(node)
  })
}

/** The code of the messages of errors: of a call, of a table of sentences, or of the constant that a call names. */
function messagesIn(source: string): string[] {
  const calls = /\b(?<first>usageError|inputError)\(|\b(?:new PlantsError|createProblem)\(/g
  const ofCalls = Array.from(source.matchAll(calls), ({ 0: call, index, groups }) => {
    const [first = '', second = ''] = partsAt(source, index + call.length)
    return groups?.['first'] ? first : second
  })
  const ofTables = Array.from(
    source.matchAll(/[{,]\s+(?:text|sentence): /g),
    ({ 0: name, index }) => partsAt(source, index + name.length)[0] ?? '',
  )
  const constants = ofCalls.flatMap((code) => {
    const start = `const ${code.trim()} = `
    const declared = /^\w+$/.test(code.trim()) ? source.split(start).slice(1) : []
    return declared.map(
      (rest) => rest.split(/\n\s*(?:\n|const|let|return|throw|if|for|\})/, 1)[0] ?? '',
    )
  })
  return [...ofCalls, ...ofTables, ...constants].filter((code) => /['"`]/.test(code))
}

/** The code between the commas from there on, up to the bracket that closes what is around it. */
function partsAt(source: string, start: number): string[] {
  const parts = ['']
  const open: string[] = []
  for (const token of readTokens(source, start, open)) {
    if (isClosing(token, open)) {
      if (open.length === 0) return parts
      open.pop()
    } else if (isOpening(token, open)) open.push(token)
    if (token === ',' && open.length === 0) parts.push('')
    else parts[parts.length - 1] += token
  }
  return parts
}

/** The tokens from there on: others within a template, when a backtick is the last that is open. */
function* readTokens(source: string, start: number, open: readonly string[]): Generator<string> {
  for (let at = start; at < source.length; ) {
    const pattern = open.at(-1) === '`' ? inTemplate : inCode
    pattern.lastIndex = at
    const [token = ''] = pattern.exec(source) ?? []
    at += token.length
    yield token
  }
}

const inCode = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\/\/.*|[\s\S]/y
const inTemplate = /\\[\s\S]|\$\{|[\s\S]/y

function isClosing(token: string, open: readonly string[]): boolean {
  return open.at(-1) === '`' ? token === '`' : /^[)\]}]$/.test(token)
}

function isOpening(token: string, open: readonly string[]): boolean {
  return open.at(-1) === '`' ? token === '${' : /^[([{`]$/.test(token)
}
