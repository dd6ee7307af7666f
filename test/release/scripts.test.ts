import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')

/** Runs a script of the project with a command line. */
async function script(line: string, env: Record<string, string> = {}) {
  const [path = '', ...args] = line.split(' ')
  const options = { cwd: root, reject: false, env: { NO_COLOR: '1', ...env } }
  const { exitCode, stdout, stderr } = await execa(process.execPath, [path, ...args], options)
  return { exitCode, stdout, stderr }
}

const from1 = 'whole numbers from 1 up'

test.each([
  ['test/soak.mjs kill', 'npm run soak -- ROUNDS [NAME]: ROUNDS must be a whole number from 1 up, but was kill'],
  ['test/matrix.mjs --only 22,23', '--only must be some of 20.19,22,24,26,file,arm64,arm64-file,musl,own, but has 23'],
  [
    'test/matrix.mjs --node 22',
    "npm run test:matrix -- [--only 20.19,22,24,26,file] [PATTERN…]: Unknown option '--node'",
  ],
  ['test/bench/start.mjs --runs 0', '--runs must be a whole number from 1 up, --only some of table,packages'],
  ['test/bench/start.mjs --node /nowhere/node', '--node /nowhere/node is no Node that can be started'],
  ['test/bench/import.mjs --only ordered,disordered', '--only some of ordered,random,export,remote'],
  [
    'test/bench/postgres.mjs --only service,unknown',
    `--rounds and --rows must be ${from1}, --seconds above 0, --only some of service,nodes,capacity,ordered,random,export`,
  ],
  ['test/bench/growth.mjs --plants 10,some', `--plants must be ${from1}, --seconds above 0`],
  ['test/bench/all.mjs --only start,end', '--only must be some of start,serve,import,postgres,growth'],
  ['test/conformance.mjs', 'npm run conformance needs Java 17 or newer'],
  [
    'bin/build-binary.mjs --target amiga',
    'There is no target amiga\nThe targets are linux-x64, linux-arm64, linux-x64-musl, ',
  ],
  ['bin/build-binary.mjs --fast', "Unknown option '--fast'"],
  ['bin/build-binary.mjs linux-x64', "Unexpected argument 'linux-x64'"],
  ['bin/release.mjs', 'One version is needed\n'],
  ['bin/release.mjs 1.0.0 2.0.0', 'One version is needed\n'],
  ['bin/release.mjs 1.0', 'A version is like 1.0.0, not 1.0\n'],
  ['bin/release.mjs 1.0.0-rc.1', 'A version is like 1.0.0, not 1.0.0-rc.1\n'],
  ['bin/release.mjs 1.0.0 --publish', "Unknown option '--publish'"],
])('%s: exit code 2', async (line, message) => {
  const env = line.includes('conformance') ? { PATH: '' } : {}
  expect(await script(line, env)).toEqual({ exitCode: 2, stdout: '', stderr: expect.stringContaining(message) })
})

test('the start is measured beside a bare runtime, and what settings and tokens add to it', async () => {
  const { exitCode, stdout } = await script('test/bench/start.mjs --runs 1 --only table')
  expect(exitCode).toBe(0)
  const title = `Node ${process.versions.node}`
  const rows = ['-e 0', '--version', '--help', 'create', 'create, remote', 'create, id exists (409)', 'list of 10']
  for (const what of rows) expect(lineOf(`${title}: ${what}`, stdout), what).toMatch(/^\d+\.\d +\d+\.\d\d +-?\d+\.\d /)
  for (const what of ['settings file', 'remote store', 'saved token, through a name'])
    expect(stdout).toMatch(new RegExp(`^${what}: [+-]\\d+\\.\\d ms \\(`, 'm'))
  const bar = lineOf(`${title}: the most of --version, --help, completion / create, each above bare`, stdout)
  expect(bar).toMatch(/^-?\d+\.\d\d +0\.5 +0\.3 +(met, as aimed|met|NOT MET)$/)
})

test('what each package costs a start is measured, and which commands pay it', async () => {
  const { exitCode, stdout } = await script('test/bench/start.mjs --runs 1 --only packages')
  expect(exitCode).toBe(0)
  for (const name of ['commander', 'SQLite driver', 'HTTP client', 'pino'])
    expect(lineOf(name, stdout)).toMatch(/^\d+\.\d +\d+$/)
  expect(lineOf('--version', stdout)).toBe('none of them')
  expect(lineOf('create', stdout)).toBe('commander, SQLite driver')
  expect(lineOf('create, on a terminal', stdout)).toContain('@inquirer/prompts')
  expect(lineOf('create, remote, token command', stdout)).toBe('commander, execa, HTTP client')
  expect(lineOf('serve', stdout)).toContain('pino')
})

test('a benchmark is run in small, and writes its figures into a copy of the page', async () => {
  const { exitCode, stdout } = await script('test/bench/all.mjs --quick --only growth')
  const written = /^\d+\.\d min\. (.*benchmarks\.md), its charts and .*figures\.json are written$/m
  const [, page = ''] = written.exec(stdout) ?? []
  expect(exitCode).toBe(0)
  expect(lineOf('1,000', stdout)).toMatch(/^\d+\.\d\d +(\d+|-) /)
  const table = /^\|Plants\|import, s\|.*\n\|---.*\n\|100\|[\d.|,-]+\n\|1,000\|[\d.|,-]+$/m
  expect(readFileSync(page, 'utf8')).toMatch(table)
  expect(readFileSync(join(page, '../bench-growth.svg'), 'utf8')).toContain('</svg>')
  rmSync(join(page, '../..'), { recursive: true })
})

test('the picture of a terminal in the README shows what a terminal shows', async () => {
  const drawn = join(temporaryFolder(), 'session.svg')
  await script(`bin/build-session.mjs ${drawn}`)
  expect(readFileSync(drawn, 'utf8')).toBe(readFileSync(join(root, 'docs/session.svg'), 'utf8'))
})

/** The rest of a line after its title. */
function lineOf(title: string, text: string): string | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${title}  `))
  return line?.slice(title.length).trim()
}
