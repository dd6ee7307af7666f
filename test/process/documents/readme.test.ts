import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { runInThisContext } from 'node:vm'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { type Block, blocksOf, helpsOf, pages } from '../../helpers/documents.js'
import { ownService, token } from '../../helpers/http-store.js'
import type { PostgresServer } from '../../helpers/postgres/server.js'
import { type Database, ownServer } from '../../helpers/postgres.js'
import { bin } from '../../helpers/process.js'
import { isHere } from '../../helpers/programs.js'
import { checkSecrets } from '../../helpers/secrets.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { rows, workbook } from '../../helpers/workbook.js'

const helps = await helpsOf([])
const password = 's3cret-of-the-page'

/** A recipe is for every day. */
const twice = ['first', 'second'] as const

const ofTheReader =
  'plants create --id 1 --name Fern; plants stores add garden ./own.db; plants config set timeout 45s'

test('the pages work one after the other in one home', async () => {
  const home = temporaryFolder()
  onTestFinished(() => closeShell(home))
  const server = await ownServer({ asksPassword: true })
  await shell(ofTheReader, home)
  const own = ownFiles(home)
  await shell(inSession(''), home)
  const variables = exportedVariables(home)
  const differences = new Map<string, unknown>()
  for (const path of readingOrder()) {
    rmSync(join(home, session), { force: true }) // a page begins in a shell of its own
    await shell(inSession(''), home)
    const difference = await firstDifference(blocksOfTest(path, server), home, server)
    if (difference !== undefined) differences.set(path, difference)
    else expect({ path, variables: exportedVariables(home) }).toEqual({ path, variables })
    await closeShell(home)
  }
  expect(Object.fromEntries(differences)).toEqual({})
  // The plants and the settings of the reader are as they were.
  expect(ownFiles(home)).toEqual(own)
})

/** The pages in the order in which somebody reads them: README, then as its last table lists them. */
function readingOrder(): Set<string> {
  const [, list = ''] = pages.get('README.md')?.split('\n## Documentation\n') ?? []
  const listed = Array.from(list.matchAll(/\]\((docs\/[^)#]+\.md)\)/g), ([, path = '']) => path)
  return new Set(['README.md', ...listed, ...pages.keys()])
}

/** The digest of each file of the default store and of the settings. */
function ownFiles(home: string): Record<string, string> {
  const folders = [join(home, 'data'), join(home, '.config')]
  const entries = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }),
  )
  const files = entries.filter((entry) => entry.isFile())
  const digest = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [name, digest(join(parentPath, name))]),
  )
}

test.skipIf(!isHere('python3'))(
  'the recipe for Python reads every name in any locale (needs python3)',
  async () => {
    const home = temporaryFolder()
    const names = ['Rösé', 'two\u2028lines\u0085', 'three\r\nof "them"\t']
    writeFileSync(
      join(home, 'plants.json'),
      JSON.stringify(names.map((name, index) => ({ id: index + 1, name }))),
    )
    await shell('plants import plants.json', home)
    const recipe = onlyBlock('docs/recipes.md', 'python')
    writeFileSync(join(home, 'recipe.py'), `${recipe}print(json.dumps(list(names.values())))\n`)
    for (const _ of twice) {
      const { stdout, stderr } = await shell(
        'LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 python3 recipe.py',
        home,
      )
      expect({ names: stdout && JSON.parse(stdout), stderr }).toEqual({ names, stderr: '' })
    }
  },
)

test('the recipe for CI passes at every push', async () => {
  const home = temporaryFolder()
  const { jobs } = parse(onlyBlock('docs/recipes.md', 'yaml')) as {
    jobs: { plants: { steps: { run?: string }[] } }
  }
  const lines = jobs.plants.steps.flatMap(({ run }) => (run?.startsWith('plants ') ? [run] : []))
  const PLANTS_STORE = await ownService({ host: '127.0.0.1', port: 0 }, join(home, 'served.db'))
  writeFileSync(join(home, 'plants.csv'), 'id,name\n1,Fern\n')
  const results: unknown[] = []
  for (const [push, line] of twice.flatMap((each) =>
    lines.map((command) => [each, command] as const),
  )) {
    const { exitCode, stdout } = await shell(
      `PLANTS_STORE=${PLANTS_STORE} PLANTS_TOKEN=${token} ${line}`,
      home,
    )
    results.push({ push, line, exitCode, done: /"(?:created|skipped)":[1-9]/.exec(stdout)?.[0] })
  }
  const [first, second] = ['"created":1', '"skipped":1']
  const expected = [first, first, first, second].map((done) => ({ exitCode: 0, done }))
  expect(results).toMatchObject(expected)
})

test.skipIf(!('rawJSON' in JSON))(
  'the functions for JavaScript keep every digit of an id (needs Node 22.1)',
  () => {
    const functions = `(() => { ${onlyBlock('docs/http-api.md', 'js')} return { parse, stringify } })()`
    type Functions = { parse: (text: string) => unknown; stringify: (plant: unknown) => string }
    const { parse, stringify } = runInThisContext(functions) as Functions
    const text = '{"id":9007199254740993,"name":"Fern"}'
    expect(JSON.stringify(JSON.parse(text))).not.toBe(text)
    expect([parse(text), stringify(parse(text))]).toEqual([
      { id: 9007199254740993n, name: 'Fern' },
      text,
    ])
  },
)

test('the examples in the help work', async () => {
  const prepared = temporaryFolder()
  const files = `echo '{"id":9,"name":"Fern"}' | tee fern.json > plants.ndjson; echo ${token} > token.txt`
  await shell(files, prepared)
  const stock = workbook({ sheets: { Stock: rows(['CommonName', 'Family'], ['Fern', 'shade']) } })
  writeFileSync(join(prepared, 'stock.xlsx'), stock)
  writeFileSync(join(prepared, 'list.csv'), 'name\nOak\n')
  const plants = 'for id in 1 2 3; do plants create --id $id --name Fern --tag shade; done'
  const backup = 'plants backup plants.bak; gzip -k plants.bak'
  const tokens = 'plants tokens create --note laptop; plants tokens create --store ./garden.db'
  await shell([plants, backup, tokens].join('; '), prepared)
  const lines = [...helps].flatMap(([path, help]) => {
    const [, section = ''] = /^Examples?:\n((?: {2}.*\n)*)/m.exec(help) ?? []
    const examples = section.trimEnd().split('\n').filter(Boolean)
    expect(path.includes(' ') || examples.length > 0, path).toBe(true)
    return examples
  })
  const service = await ownService({ host: '127.0.0.1', port: 0 }, join(prepared, 'served.db'))
  const results = await Promise.all(lines.map((line) => runExample(line, prepared, service)))
  expect(results).toEqual(lines.map((line) => ({ line, exitCode: 0, stderr: '' })))
})

/** Runs an example of the help in a folder of its own, with a plant and a token unless it creates one. */
async function runExample(line: string, prepared: string, service: string) {
  const folder = temporaryFolder()
  const hasPlants = !/plants (tokens )?create/.test(line)
  cpSync(prepared, folder, {
    recursive: true,
    filter: (path) => hasPlants || !path.endsWith('/data'),
  })
  const real = line.includes('auth') ? line.replace('https://plants.example.com', service) : line
  if (real.includes('auth status'))
    await shell(real.replace('status', 'login --from-stdin < token.txt'), folder)
  const { exitCode, stderr } = await shell(unattended(real), folder)
  return { line, exitCode, stderr: withoutNotes(stderr) }
}

/** An example that ends without somebody who answers or stops it. */
function unattended(line: string): string {
  if (line.includes('delete') && !line.includes('--yes')) return `${line} --yes`
  if (line.includes('auth login') && !line.includes('--from-stdin'))
    return `${line} --from-stdin < token.txt`
  if (!line.includes('plants serve')) return line
  const served = line.includes('--port') ? line : `${line} --port 0`
  return `${served} > address.txt 2> log.txt & until grep -qs http address.txt; do kill -0 $!; done; kill $!; wait $!`
}

function onlyBlock(path: string, language: string): string {
  const blocks = blocksOf(pages.get(path) ?? '').filter((block) => block.language === language)
  expect(blocks).toHaveLength(1)
  return blocks.map(({ text }) => text).join('')
}

/** Runs the blocks of a page one after the other in one shell, until one does something else than the page shows. */
async function firstDifference(blocks: Block[], home: string, server: Database) {
  for (const { language, text } of blocks) {
    if (language === 'sql')
      for (const statement of text.split(';\n').filter(Boolean)) await server.admin(statement)
    const difference = await runBlock({ language, text }, home)
    if (difference !== undefined) return difference
  }
  return undefined
}

/** What of a page is run, with the server and the passwords of this test. */
function blocksOfTest(path: string, { port }: PostgresServer): Block[] {
  const page = pages.get(path) ?? ''
  const blocks = blocksOf(page).filter(({ text }) => !/^npm /m.test(text))
  if (path === 'docs/recipes.md')
    return blocks.flatMap((block, index) => (index === 0 ? [block] : [block, block]))
  if (path !== 'docs/databases.md') return blocks
  const real = (text: string) =>
    text
      .replaceAll(
        'postgres://plants@db.example.com/plants',
        `postgres://owner@127.0.0.1:${port}/garden`,
      )
      .replaceAll('db.example.com:5432:plants:plants', `127.0.0.1:${port}:garden:owner`)
      .replaceAll('ROLE plants', 'ROLE owner')
      .replaceAll('DATABASE plants OWNER plants', 'DATABASE garden OWNER owner')
      .replaceAll('long and random', password)
  return blocks.map(({ language, text }) => ({ language, text: real(text) }))
}

/**
 * Runs a block in the shell of its page. Undefined when it did what the page promises: no error or warning on stderr and
 * exit code 0, or for `console` the text that it shows.
 */
async function runBlock({ language, text }: Block, home: string) {
  if (language === 'sh') return runLines(text, home)
  if (language !== 'console') return undefined
  const script = `export PLANTS_OUTPUT=text\nexec 2>&1\n${scriptOf(text)}\nunset PLANTS_OUTPUT`
  const { exitCode, stdout } = await shell(inSession(script), home)
  const isAsShown = exitCode === 0 && timeless(stdout) === timeless(text.trimEnd())
  return isAsShown ? undefined : { block: text, exitCode, printed: stdout }
}

async function runLines(lines: string, home: string) {
  const { exitCode, stderr } = await shell(inSession(lines), home)
  const printed = withoutNotes(stderr)
  return exitCode === 0 && printed === '' ? undefined : { block: lines, exitCode, printed }
}

/** Ends what the page left running. */
async function closeShell(home: string): Promise<void> {
  await shell(inSession('kill -9 $(cat *.pid) 2> /dev/null || true'), home)
}

/** The file in the home that has what one block leaves to the next one: the exported variables and the directory. */
const session = '.session'

/** The names of the variables that a page has left to the programs that its reader starts next. */
function exportedVariables(home: string): string[] {
  const names = readFileSync(join(home, session), 'utf8').matchAll(/^declare -x (\w+)/gm)
  return Array.from(names, ([, name = '']) => name).filter((name) => name !== 'OLDPWD')
}

function inSession(lines: string): string {
  const file = `"$HOME/${session}"`
  return `if test -e ${file}; then . ${file}; fi
trap '{ export -p; printf "cd %q\\n" "$PWD"; } > ${file}' EXIT
${lines}`
}

/** What is on stderr besides notes about what was done. */
function withoutNotes(stderr: string): string {
  const done =
    /Created store .*|Its id is -?\d+|(?:Deleted|Would delete|Would update) [\d,]+ plants?/
  const numbered = /Plants with(?:out an id| a new name) (?:would get|got) \d+/
  const notes = new RegExp(
    `^(?:plants: |\\{"warning":")(?:${done.source}|${numbered.source})(?:\\n|$)`,
    'gm',
  )
  return stderr.replaceAll(notes, '')
}

/** Prints each command of a console block before it runs it, as a terminal shows it. */
function scriptOf(text: string): string {
  const commands = [...text.matchAll(/^\$ (.*)$/gm)].map(([, command = '']) => command)
  return commands
    .map((command) => `printf '%s\\n' '$ ${command.replaceAll("'", "'\\''")}'\n${command} || true`)
    .join('\n')
}

/** A text without what each run has of its own: durations, and the directory that mktemp made. */
function timeless(text: string): string {
  return text.replaceAll(/\d+\.\d s\b/g, '0.1 s').replaceAll(/\/\S*\/tmp\.\w+/g, '/tmp/tmp.XXXX')
}

/** Runs lines in a shell that knows `plants`, each of which must work. */
async function shell(lines: string, folder: string) {
  const path = join(folder, 'bin')
  const temporary = join(folder, 'tmp')
  if (!existsSync(path)) {
    mkdirSync(path)
    mkdirSync(temporary)
    symlinkSync(bin, join(path, 'plants'))
  }
  const PATH = `${path}:${process.env['PATH']}:/usr/sbin`
  const env = { PATH, HOME: folder, TMPDIR: temporary, PLANTS_DATA_DIR: join(folder, 'data') }
  const options = { cwd: folder, env, extendEnv: false, reject: false, stdin: 'ignore' } as const
  const result = await execa('bash', ['-euo', 'pipefail', '-c', lines], options)
  checkSecrets({ argv: [lines], err: result.stderr })
  return result
}
