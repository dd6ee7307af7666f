import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const files = sourceFiles('src')

/** Who may import a package: one door each, so that a change of package is a change of one file. */
const doors: Record<string, string[]> = {
  '@inquirer/prompts': ['src/prompts.ts'],
  '@photostructure/sqlite': ['src/stores/sqlite/driver.ts'],
  chalk: ['src/output.ts'],
  conf: ['src/settings/replace.ts'],
  'csv-parse': ['src/bulk/formats/csv-cells.ts'],
  'env-paths': ['src/io.ts'],
  execa: ['src/access/token-command.ts'],
  leven: ['src/nearest.ts'],
  pino: ['src/service/log.ts'],
  postgres: ['src/stores/postgres/connection.ts'],
  'prom-client': ['src/service/metrics.ts'],
  'string-width': ['src/output/table.ts'],
}

/** The packages that a whole room works with. */
const rooms: Record<string, RegExp> = {
  commander: /^src\/command-line\/(program|usage)\.ts$/,
  fastify: /^src\/service\/(app|answers)\.ts$/,
  undici: /^src\/stores\/remote\//,
  zod: /^src\/(new-plant-schema|settings\/schema|bulk\/import\/position)\.ts$/,
}

/** What a file may import of ours. What is not named may import anything that no other rule forbids. */
const directions: [from: RegExp, to: RegExp][] = [
  [/^src\/(errors|json)\.ts$/, /^$/],
  [/^src\/plant\.ts$/, /^src\/json\.ts$/],
  [/^src\/io(\/\w+)?\.ts$/, /^src\/(errors|io|io\/\w+)\.ts$/],
  [/^src\/(?!io\b|input|start)/, /^src\/(?!io\/)/],
  [
    /^src\/settings\//,
    /^src\/(settings\/[\w-]+|access\/certificates|errors|file-lock|flags|folder|io|json|link-target|nearest|plant|stores\/(open|store))\.ts$/,
  ],
  [/^src\/(?!stores\/|file-lock)/, /^src\/(?!stores\/(?!(open|store)\.ts))/],
  [/^src\/stores\//, /^src\/(stores\/.*|folder|loopback|socket-owner|plant|plant-rows|json|errors)\.ts$/],
  [
    /^src\/command-line\//,
    /^src\/(command-line\/[\w-]+|commands\/[\w-]+|settings\/table|bulk\/formats\/format-names|service\/defaults|stores\/(open|store)|help\/[\w-]+|errors|flags|io|json|nearest|output|plant)\.ts$/,
  ],
  [
    /^src\/completion\//,
    /^src\/(completion\/[\w-]+|command-line\/(commands|help-page|spec)|help\/topics|settings\/(file|origin|store-name|table)|errors|flags|io|output|output\/\w+|plant)\.ts$/,
  ],
  [/^src\/help\//, /^src\/(help\/[\w-]+|command-line\/spec|settings\/table|errors|io|output|output\/\w+)\.ts$/],
  [
    /^src\/commands\//,
    /^src\/((?!run|start|commands\/|stores\/)[\w-]+|stores\/(open|store)|command-line\/(copies|plants|service|settings)|(service|settings|access|output|bulk|completion)\/[\w/-]+)\.ts$/,
  ],
  [/^src\/output(\/\w+)?\.ts$/, /^src\/(output|output\/\w+|errors|io|json|plant|settings\/[\w-]+|stores\/store)\.ts$/],
  [/^src\/bulk\//, /^src\/((?!run|start|commands\/|stores\/|service\/)[\w/-]+|stores\/(open|store))\.ts$/],
  [/^src\/service\//, /^src\/((?!run|start|commands\/|stores\/)[\w/-]+|stores\/store)\.ts$/],
  [
    /^src\/access(\/[\w-]+)?\.ts$/,
    /^src\/(access|access\/[\w-]+|settings|settings\/[\w-]+|output|output\/trace|stores\/(open|store)|errors|flags|input|io|loopback|socket-owner)\.ts$/,
  ],
  [
    /^src\/preview\.ts$/,
    /^src\/(access|access\/proxy|settings\/preferences|output|output\/(curl|request|visible)|stores\/(open|store)|errors|io|json|plant)\.ts$/,
  ],
  [
    /^src\/doctor\.ts$/,
    /^src\/(access|access\/(login|proxy)|settings|settings\/[\w-]+|stores\/(open|store)|errors|flags|io|loopback)\.ts$/,
  ],
  [/^src\/start\.ts$/, /^src\/(io|run|io\/compile-cache)\.ts$/],
]

/** One object in four files, until the HTTP client is rewritten. */
const upload = ['bulk', 'renewal', 'sending', 'trouble'].map((name) => `src/stores/remote/${name}.ts`)

/** What a lazy import closes besides: the schema names what is wrong in a settings file, which asks it only for one that is broken. */
const settingsFile = ['file', 'origin', 'schema', 'store-name'].map((name) => `src/settings/${name}.ts`)

test('every import goes the way the design says', () => {
  const wrong = imports().filter(({ file, target }) =>
    directions.some(([from, to]) => from.test(file) && target.startsWith('src/') && !to.test(target)),
  )
  expect(wrong).toEqual([])
})

test('no files import each other in a circle, not even types, but one that is known', () => {
  expect(circles(imports().filter(({ isLazy }) => !isLazy))).toEqual([upload])
})

test('no circle is closed by what is imported when it is needed, but one that is known', () => {
  expect(circles(imports().filter(({ isType }) => !isType))).toEqual([settingsFile])
})

test('every package has one door', () => {
  const packages = imports().filter(({ target }) => !target.startsWith('src/') && !target.startsWith('node:') && target !== 'package.json')
  const wrong = packages.filter(({ file, target }) => !(rooms[target]?.test(file) ?? doors[target]?.includes(file) ?? false))
  expect(wrong).toEqual([])
})

test('every file is reached from the start', () => {
  const edges = imports()
  const reached = new Set(['src/start.ts'])
  for (const file of reached) for (const { target } of edges.filter((edge) => edge.file === file)) reached.add(target)
  expect(files.filter((file) => !reached.has(file) && !file.endsWith('.d.ts'))).toEqual([])
})

test.each([
  [
    'the process is touched by io and the start alone',
    /\bprocess\.(?!versions\b|platform\b|arch\b|getBuiltinModule\b)\w+/g,
    files.filter((file) => /^src\/(io\b|start\.ts)/.test(file)),
  ],
  ['nothing leaves by process.exit', /\bprocess\.exit\(/g, []],
  ['no URL is checked by what Node 20 gets wrong, as parseAddress does not', /\bURL\.canParse\(/g, []],
  ['nothing is printed past Io', /\bconsole\./g, []],
  ['an id is never a number', /\bNumber\(\w*[iI]d\b/g, []],
  ['the compiler is never got past', /\bas any\b|: any\b|@ts-(ignore|expect-error|nocheck)|biome-ignore/g, []],
])('%s', (_, pattern, allowed: string[]) => {
  const found = files
    .filter((file) => !allowed.includes(file))
    .flatMap((file) => [...read(file).matchAll(pattern)].map((match) => `${file}: ${match[0]}`))
  expect(found).toEqual([])
})

test('tests wait for events, never for time to pass', () => {
  const pattern = /\bsetTimeout\(|timers\/promises|\bsleep \d/
  expect(sourceFiles('test').filter((file) => file !== 'test/architecture.test.ts' && pattern.test(read(file)))).toEqual([])
})

function sourceFiles(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .toSorted()
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

interface Import {
  file: string
  /** a path from the project's root, or the name of a package */
  target: string
  /** whether it is imported when it is needed */
  isLazy: boolean
  /** whether it is about types alone */
  isType: boolean
}

function imports(): Import[] {
  return files.flatMap((file) =>
    [...read(file).matchAll(/(?:(^(?:import|export) type [^'\n]*)?from|import\(|import) ?'([^'\s]+)'/gm)].map(
      ([text, type, name = '']) => ({
        ...{ file, target: targetOf(name, file) },
        isLazy: text.startsWith('import('),
        isType: type !== undefined,
      }),
    ),
  )
}

/** The groups of files of which each one leads to every other. */
function circles(edges: readonly Import[]): string[][] {
  const targets = new Map(files.map((file) => [file, edges.filter((edge) => edge.file === file)]))
  const reachedFrom = new Map(
    files.map((file) => {
      const reached = new Set<string>()
      for (const { target } of targets.get(file) ?? []) reached.add(target)
      for (const next of reached) for (const { target } of targets.get(next) ?? []) reached.add(target)
      return [file, reached]
    }),
  )
  const groups = files.map((file) => files.filter((other) => reachedFrom.get(file)?.has(other) && reachedFrom.get(other)?.has(file)))
  return groups.filter((group, index) => group.length > 0 && group[0] === files[index])
}

function targetOf(name: string, file: string): string {
  if (name.startsWith('.'))
    return relative(root, join(root, dirname(file), name))
      .replaceAll('\\', '/')
      .replace(/\.js$/, '.ts')
  if (name.startsWith('node:')) return name
  return name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
}
