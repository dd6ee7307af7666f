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
  [/^src\/stores\//, /^src\/(stores\/.*|folder|loopback|plant|plant-rows|json|errors)\.ts$/],
  [
    /^src\/command-line\//,
    /^src\/(command-line\/[\w-]+|commands\/[\w-]+|settings\/table|bulk\/formats\/format-names|service\/defaults|stores\/(open|store)|help\/[\w-]+|errors|flags|io|json|output|plant)\.ts$/,
  ],
  [
    /^src\/completion\//,
    /^src\/(completion\/[\w-]+|command-line\/(commands|help-page|spec)|help\/topics|settings\/(file|origin|store-name|table)|errors|flags|io|output|output\/\w+|plant)\.ts$/,
  ],
  [/^src\/help\//, /^src\/(help\/[\w-]+|command-line\/spec|settings\/table|errors|io|output|output\/\w+)\.ts$/],
  [
    /^src\/commands\//,
    /^src\/((?!run|start|commands\/|stores\/)[\w-]+|stores\/(open|store)|(service|settings|access|output|bulk|completion)\/[\w/-]+)\.ts$/,
  ],
  [/^src\/output(\/\w+)?\.ts$/, /^src\/(output|output\/\w+|errors|io|json|plant|settings\/[\w-]+|stores\/store)\.ts$/],
  [/^src\/bulk\//, /^src\/((?!run|start|commands\/|stores\/|service\/)[\w/-]+|stores\/(open|store))\.ts$/],
  [/^src\/service\//, /^src\/((?!run|start|commands\/|stores\/)[\w/-]+|stores\/store)\.ts$/],
  [/^src\/start\.ts$/, /^src\/(io|run|io\/compile-cache)\.ts$/],
]

test('every import goes the way the design says', () => {
  const wrong = imports().filter(({ file, target }) =>
    directions.some(([from, to]) => from.test(file) && target.startsWith('src/') && !to.test(target)),
  )
  expect(wrong).toEqual([])
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

/** Each import of each source file: a path from the project's root, or the name of a package. */
function imports(): { file: string; target: string }[] {
  return files.flatMap((file) =>
    [...read(file).matchAll(/(?:from|import\(|import) ?'([^'\s]+)'/g)].map((match) => ({ file, target: targetOf(match[1] ?? '', file) })),
  )
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
