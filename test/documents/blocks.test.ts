import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInThisContext } from 'node:vm'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import {
  type Block,
  findBlocks,
  findProcedures,
  pages,
  readAllHelps,
} from '../helpers/expect/documents.js'
import { checkSecrets } from '../helpers/expect/secrets.js'
import { startOwnServer } from '../helpers/postgres/database.js'
import { byPassword, installations } from '../helpers/postgres/server.js'
import { bin } from '../helpers/sandbox/process.js'
import { isInstalled } from '../helpers/sandbox/programs.js'
import { createTemporaryFolder } from '../helpers/sandbox/temporary-folder.js'
import { buildRows, buildWorkbook } from '../helpers/sandbox/workbook.js'
import { serveFile, token } from '../helpers/scripted-server/service.js'

const helps = await readAllHelps()

for (const path of pages.keys()) {
  const needs = findNeeds(path)
  const suffix = needs.length > 0 ? ` (needs ${needs.join(' and ')})` : ''
  test.skipIf(!canRun(path))(
    `each procedure of ${path} works in an empty home${suffix}`,
    async () => {
      const procedures = findProcedures(pages.get(path) ?? '').filter(isRun)
      const differences = await Promise.all(
        procedures.map(async (blocks) => {
          const home = createTemporaryFolder()
          onTestFinished(() => closeShell(home))
          const server = blocks.some(({ language }) => language === 'sql')
            ? await startOwnServer({ access: byPassword })
            : undefined
          beginSession(home, path)
          const adapted = adaptBlocks(path, blocks, server?.port)
          // A recipe is for every day: each of its blocks is run twice.
          const isRecipe = path === 'docs/recipes.md'
          const runs = isRecipe ? adapted.flatMap((block) => [block, block]) : adapted
          return runBlocks(runs, home, server)
        }),
      )
      expect(differences.filter((difference) => difference !== undefined)).toEqual([])
    },
  )
}

/** Whether this machine has the programs that the blocks of a page call. */
function canRun(path: string): boolean {
  const isHere = (need: string) =>
    need === 'PostgreSQL' ? installations.length > 0 : isInstalled(need)
  return findNeeds(path).every(isHere)
}

/** Returns the programs that the blocks of a page call, and that not every machine has. */
function findNeeds(path: string): string[] {
  const procedures = findProcedures(pages.get(path) ?? '').filter(isRun)
  const blocks = procedures.flat()
  const script = blocks.map(({ text }) => text).join('')
  const programs = ['curl', 'sqlite3'].filter((name) => RegExp(`\\b${name} `).test(script))
  const hasSql = blocks.some(({ language }) => language === 'sql')
  return hasSql ? [...programs, 'PostgreSQL'] : programs
}

/** Whether a procedure has more than text, and nothing that installs packages. */
function isRun(blocks: Block[]): boolean {
  const isNpm = blocks.some(({ text }) => /^npm /m.test(text))
  return !isNpm && blocks.some(({ language }) => ['sh', 'console'].includes(language))
}

/** A page begins in a shell of its own, in a directory that has only the examples of a clone. */
function beginSession(home: string, path: string): void {
  const folder = join(home, 'pages', path.replaceAll('/', '-'))
  cpSync('examples', join(folder, 'examples'), { recursive: true })
  writeFileSync(join(home, session), `cd '${folder}'\n`)
}

/** Runs blocks in one session until one of them does not do what it promises. */
async function runBlocks(
  blocks: Block[],
  home: string,
  server?: { queryAsSuperuser: RunStatement },
) {
  for (const block of blocks) {
    if (block.language === 'sql')
      for (const statement of block.text.split(';\n').filter(Boolean))
        await server?.queryAsSuperuser(statement)
    const difference = await runBlock(block, home)
    if (difference !== undefined) return difference
  }
  return
}

type RunStatement = (statement: string) => Promise<unknown>

/** The blocks about databases, with the server of a test. */
function adaptBlocks(path: string, blocks: Block[], port: number | undefined): Block[] {
  if (path !== 'docs/postgresql.md') return blocks
  const real = (text: string) =>
    text
      .replaceAll('plants@db.example.com/plants', `owner@127.0.0.1:${port}/garden`)
      .replaceAll('db.example.com:5432:plants:plants', `127.0.0.1:${port}:garden:owner`)
      .replaceAll('ROLE plants', 'ROLE owner')
      .replaceAll('DATABASE plants OWNER plants', 'DATABASE garden OWNER owner')
      .replaceAll('long and random', 's3cret-of-the-page')
  return blocks.map(({ language, text }) => ({ language, text: real(text) }))
}

/**
 * Runs a block in the shell of its page. Undefined when it did what the page promises: no error or
 * warning on stderr and exit code 0, or for `console` the text that it shows.
 */
async function runBlock({ language, text }: Block, home: string) {
  if (language === 'sh') {
    const { exitCode, stderr } = await shell(inSession(text), home)
    const printed = withoutNotes(stderr)
    return exitCode === 0 && printed === '' ? undefined : { text, exitCode, printed }
  }
  if (language !== 'console') return undefined
  const script = `export PLANTS_OUTPUT=text\nexec 2>&1\n${scriptOf(text)}\nunset PLANTS_OUTPUT`
  const { exitCode, stdout: printed } = await shell(inSession(script), home)
  const isAsShown = exitCode === 0 && timeless(printed) === timeless(text.trimEnd())
  return isAsShown ? undefined : { text, exitCode, printed }
}

/** Prints each command of a console block before it runs it, as a terminal shows it. */
function scriptOf(text: string): string {
  const commands = Array.from(text.matchAll(/^\$ (.*)$/gm), ([, command = '']) => command)
  return commands
    .map((command) => `printf '%s\\n' '$ ${command.replaceAll("'", "'\\''")}'\n${command} || true`)
    .join('\n')
}

/** A text without what each run has of its own: dates, times, and the directory of the page. */
function timeless(text: string): string {
  return text
    .replaceAll(/\d+\.\d s\b/g, '0.1 s')
    .replaceAll(/\d{4}-\d\d-\d\d\b/g, '2026-01-02')
    .replaceAll(/\d{8}T\d{6}Z/g, '20260102T030405Z')
    .replaceAll(/\/\S*\/pages\/[^/\s]+\//g, '/home/ada/')
}

/** The file that has what one block leaves to the next one: the exported variables and the directory. */
const session = '.session'

function inSession(lines: string): string {
  const file = `"$HOME/${session}"`
  return `if test -e ${file}; then . ${file}; fi
trap '{ export -p; printf "cd %q\\n" "$PWD"; } > ${file}' EXIT
${lines}`
}

/** Ends what the page left running. */
async function closeShell(home: string): Promise<void> {
  await shell(inSession('kill -9 $(cat *.pid) 2> /dev/null || true'), home)
}

test.skipIf(!('rawJSON' in JSON))(
  'the JavaScript functions of the pages keep every digit of an id (needs Node 22.1)',
  () => {
    const blocks = findBlocks(pages.get('docs/http-api.md') ?? '')
    const code = blocks.find(({ language }) => language === 'js')?.text
    const functions = `(() => { ${code} return { parse, stringify } })()`
    type Functions = { parse: (text: string) => unknown; stringify: (plant: unknown) => string }
    const { parse, stringify } = runInThisContext(functions) as Functions
    const text = '{"id":9007199254740993,"name":"Fern"}'
    expect(parse(text)).toEqual({ id: 9007199254740993n, name: 'Fern' })
    expect(stringify(parse(text))).toBe(text)
  },
)

test('each example in a help text works', async () => {
  const prepared = createTemporaryFolder()
  const stock = buildRows(['No', 'Kind'], ['8', 'Aloe'])
  writeFileSync(join(prepared, 'stock.xlsx'), buildWorkbook({ sheets: { Stock: stock } }))
  writeFileSync(join(prepared, 'list.csv'), 'name\nOak\n')
  const list = buildRows(['id', 'name'], ['7', 'Oak'])
  writeFileSync(join(prepared, 'list.xlsx'), buildWorkbook({ sheets: { List: list } }))
  const lines = [
    `echo '{"id":9,"name":"Fern"}' | tee fern.json > plants.ndjson; echo ${token} > token.txt`,
    'for id in 1 2 3; do plants create --id $id --name Fern --tag shade; done',
    'plants backup plants.bak; gzip -k plants.bak',
    'plants tokens create --note laptop; plants tokens create --store ./garden.db',
    'plants stores add nursery ./nursery.db',
  ]
  await shell(lines.join('\n'), prepared)
  const examples = [...helps.keys()].flatMap((path) => {
    const found = findExamples(path)
    expect(path.includes(' ') || found.length > 0, path).toBe(true)
    return found
  })
  const service = await serveFile(join(prepared, 'served.db'))
  const results = await Promise.all(examples.map((line) => runExample(line, prepared, service)))
  expect(results).toEqual(examples.map((line) => ({ line, exitCode: 0, stderr: '' })))
})

test.each(['create', 'serve', 'tokens'])(
  'the examples in the help of %s work one after the other in the same store',
  async (path) => {
    const lines = findExamples(path).map(unattended).join('\n')
    const { exitCode, stderr } = await shell(lines, createTemporaryFolder())
    expect([exitCode, withoutNotes(stderr)]).toEqual([0, ''])
  },
)

function findExamples(path: string): string[] {
  const [, section = ''] = /^Examples?:\n((?: {2}.*\n)*)/m.exec(helps.get(path) ?? '') ?? []
  return section.trimEnd().split('\n').filter(Boolean)
}

/** Runs an example of the help in a folder of its own, with plants and tokens unless it creates one. */
async function runExample(line: string, prepared: string, service: string) {
  const folder = createTemporaryFolder()
  const hasPlants = !/plants (tokens )?create/.test(line)
  const filter = (path: string) => hasPlants || !path.endsWith('/data')
  cpSync(prepared, folder, { recursive: true, filter })
  const real = line
    .replace(/(?<=plants auth .*)https:\/\/plants\.example\.com/, service)
    .replace(/(?<=plants stores init ).*/, './new.db')
  const afterLogin = /auth (status|token|logout)/
  if (afterLogin.test(real))
    await shell(real.replace(afterLogin, 'auth login --from-stdin < token.txt'), folder)
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

/** What is on stderr besides notes about what was done, and what can be done next. */
function withoutNotes(stderr: string): string {
  const done =
    /Created store .*|Its id is -?\d+|(?:Deleted|Would delete|Would update) [\d,]+ plants?/
  const hints = /To undo, .*|The list lacks .*/
  const begin = /^(?:plants: |\{"warning":")/
  const notes = `${begin.source}(?:${done.source}|${hints.source})(?:\\n|$)`
  return stderr.replaceAll(RegExp(notes, 'gm'), '')
}

/** Runs lines in a shell that knows `plants`, each of which must work. */
async function shell(lines: string, folder: string) {
  const [path, temporary] = [join(folder, 'bin'), join(folder, 'tmp')]
  if (!existsSync(path)) {
    for (const made of [path, temporary]) mkdirSync(made)
    symlinkSync(bin, join(path, 'plants'))
  }
  const PATH = `${path}:${process.env['PATH']}:/usr/sbin`
  const env = { PATH, HOME: folder, TMPDIR: temporary, PLANTS_DATA_DIR: join(folder, 'data') }
  const options = { cwd: folder, env, extendEnv: false, reject: false, stdin: 'ignore' } as const
  const result = await execa('bash', ['-euo', 'pipefail', '-c', lines], options)
  checkSecrets({ argv: [lines], err: result.stderr })
  return result
}
