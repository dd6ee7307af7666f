import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../helpers/temporary.js'

const script = (name: string, args: string[]) =>
  execa(process.execPath, [join(import.meta.dirname, `../${name}.mjs`), ...args], {
    reject: false,
    env: { NO_COLOR: '1' },
  })
const soak = (...args: string[]) => script('soak', args)
const matrix = (...args: string[]) => script('matrix', args)
const bench = (name: string, ...args: string[]) => script(`bench/${name}`, args)

test('a soak wants a number', async () => {
  const { exitCode, stderr } = await soak('kill')
  const message = 'npm run soak -- ROUNDS [NAME]: ROUNDS must be a whole number from 1 up, but was kill'
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: message })
})

test.each([
  [['--only', '22,23'], '--only must be some of 20.19,22,24,26,file,arm64,arm64-file,musl,own, but has 23'],
  [['--node', '22'], "npm run test:matrix -- [--only 20.19,22,24,26,file] [PATTERN…]: Unknown option '--node'"],
])('the matrix refuses %j', async (args, message) => {
  const { exitCode, stdout, stderr } = await matrix(...args)
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: expect.stringContaining(message) })
})

test('the start is measured beside a bare runtime, and what settings and tokens add to it', async () => {
  const { exitCode, stdout } = await bench('start', '--runs', '1', '--only', 'table')
  expect(exitCode).toBe(0)
  const title = `Node ${process.versions.node}`
  for (const what of [
    '-e 0',
    '--version',
    '--help',
    'create',
    'create, remote',
    'create, id exists (409)',
    'list of 10',
  ]) {
    const figures = lineOf(`${title}: ${what}`, stdout)
    expect({ what, figures }).toEqual({ what, figures: expect.stringMatching(/^\d+\.\d +\d+\.\d\d +-?\d+\.\d /) })
  }
  for (const what of ['settings file', 'remote store', 'saved token, through a name']) {
    expect(stdout).toMatch(new RegExp(`^${what}: [+-]\\d+\\.\\d ms \\(`, 'm'))
  }
  const bar = lineOf(`${title}: the most of --version, --help, completion / create, each above bare`, stdout)
  expect(bar).toMatch(/^-?\d+\.\d\d +0\.5 +0\.3 +(met, as aimed|met|NOT MET)$/)
})

test('what each package costs a start is measured, and which commands pay it', async () => {
  const { exitCode, stdout } = await bench('start', '--runs', '1', '--only', 'packages')
  expect(exitCode).toBe(0)
  for (const name of ['commander', 'SQLite driver', 'HTTP client', 'pino'])
    expect(lineOf(name, stdout)).toMatch(/^\d+\.\d +\d+$/)
  expect(lineOf('--version', stdout)).toBe('none of them')
  expect(lineOf('create', stdout)).toBe('commander, SQLite driver')
  expect(lineOf('create, on a terminal', stdout)).toContain('@inquirer/prompts')
  expect(lineOf('create, remote, token command', stdout)).toBe('commander, execa, HTTP client')
  expect(lineOf('serve', stdout)).toContain('pino')
})

test.each([
  [['--runs', '0'], '--runs must be a whole number from 1 up, --only some of table,packages'],
  [['--node', '/nowhere/node'], '--node /nowhere/node is no Node that can be started'],
])('the start is not measured with %j', async (args, message) => {
  const { exitCode, stdout, stderr } = await bench('start', ...args)
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: message })
})

test('the import is measured in parts that there are', async () => {
  const { exitCode, stdout, stderr } = await bench('import', '--only', 'ordered,disordered')
  const message = '--rows and --rounds must be whole numbers from 1 up, --only some of ordered,random,export,remote'
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: message })
})

test('the shared database is measured in parts that there are', async () => {
  const { exitCode, stdout, stderr } = await bench('postgres', '--only', 'service,unknown')
  const message =
    '--rounds and --rows must be whole numbers from 1 up, --seconds above 0, --only some of service,nodes,capacity,ordered,random,export'
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: message })
})

test.each([
  ['growth', ['--plants', '10,some'], '--plants must be whole numbers from 1 up, --seconds above 0'],
  ['all', ['--only', 'start,end'], '--only must be some of start,serve,import,postgres,growth'],
])('the benchmark %s is not run with %j', async (name, args, message) => {
  const { exitCode, stdout, stderr } = await bench(name, ...args)
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: '', stderr: message })
})

test('a benchmark is run in small, and writes its figures into a copy of the page', async () => {
  const { exitCode, stdout } = await bench('all', '--quick', '--only', 'growth')
  const [, page = ''] =
    /^\d+\.\d min\. (.*benchmarks\.md), its charts and .*figures\.json are written$/m.exec(stdout) ?? []
  expect(exitCode).toBe(0)
  expect(lineOf('1,000', stdout)).toMatch(/^\d+\.\d\d +(\d+|-) /)
  expect(readFileSync(page, 'utf8')).toMatch(
    /^\|Plants\|import, s\|.*\n\|---.*\n\|100\|[\d.|,-]+\n\|1,000\|[\d.|,-]+$/m,
  )
  expect(readFileSync(join(page, '../bench-growth.svg'), 'utf8')).toContain('</svg>')
  rmSync(join(page, '../..'), { recursive: true })
})

test('the picture of a terminal in the README shows what a terminal shows', async () => {
  const drawn = join(temporaryFolder(), 'session.svg')
  await execa(process.execPath, [join(import.meta.dirname, '../../bin/build-session.mjs'), drawn])
  expect(readFileSync(drawn, 'utf8')).toBe(readFileSync(join(import.meta.dirname, '../../docs/session.svg'), 'utf8'))
})

test('the conformance test says what it needs', async () => {
  const script = join(import.meta.dirname, '../conformance.mjs')
  const { exitCode, stdout, stderr } = await execa(process.execPath, [script], { reject: false, env: { PATH: '' } })
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: 'npm run conformance needs Java 17 or newer',
  })
})

/** What stands in a line behind its title. */
function lineOf(title: string, text: string): string | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${title}  `))
  return line?.slice(title.length).trim()
}
