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
  ['bench/start.mjs --runs 0', '--runs must be a whole number from 1 up, --only some of table,files'],
  ['bench/start.mjs --node /nowhere/node', '--node /nowhere/node is no Node that can be started'],
  ['bench/import.mjs --only ordered,disordered', '--only some of ordered,random,export,remote'],
  [
    'bench/postgres.mjs --only service,unknown',
    `--rounds and --rows must be ${from1}, --seconds above 0, --only some of service,nodes,ordered,random,export`,
  ],
  ['bench/growth.mjs --plants 10,some', `--plants must be ${from1}, --seconds above 0`],
  ['bench/all.mjs --only start,end', '--only must be some of start,serve,import,postgres,growth'],
  ['test/conformance.mjs', 'npm run conformance needs Java 17 or newer'],
  [
    'bin/build-binary.mjs --target amiga',
    'There is no target amiga\nThe targets are linux-x64, linux-arm64, linux-x64-musl, ',
  ],
  ['bin/build-binary.mjs --fast', "Unknown option '--fast'"],
  ['bin/release.mjs', 'One version is needed\n'],
  ['bin/release.mjs 1.0.0-rc.1', 'A version is like 1.0.0, not 1.0.0-rc.1\n'],
  ['bin/release.mjs 1.0.0 --publish', "Unknown option '--publish'"],
])('%s: exit code 2', async (line, message) => {
  const env = line.includes('conformance') ? { PATH: '' } : {}
  expect(await script(line, env)).toEqual({ exitCode: 2, stdout: '', stderr: expect.stringContaining(message) })
})

test('the start is measured beside a bare runtime', async () => {
  const { exitCode, stdout } = await script('bench/start.mjs --runs 1')
  expect(exitCode).toBe(0)
  const title = `Node ${process.versions.node}`
  for (const what of ['-e 0', '--version', 'create', 'create, remote'])
    expect(lineOf(`${title}: ${what}`, stdout), what).toMatch(/^\d+\.\d +\d+\.\d\d +-?\d+\.\d /)
  expect(lineOf(`${title}: version / bare`, stdout)).toMatch(/^\d+\.\d\d +1\.2 +(met|NOT MET)$/)
  for (const file of ['create', 'sqlite', 'all']) expect(lineOf(file, stdout)).toMatch(/^\d+\.\d$/)
})

test('a benchmark writes its figures into a copy of the page', async () => {
  const { exitCode, stdout } = await script('bench/all.mjs --quick --only growth')
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
