import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { bin, plants } from './helpers/process.js'
import { temporaryFolder } from './helpers/temporary.js'

const root = join(import.meta.dirname, '..')
const readme = read('README.md')
const blocks = [...readme.matchAll(/```sh\n(.*?)```/gs)].map((match) => match[1] ?? '')
const groups = { tokens: ['create', 'list', 'revoke'], auth: ['login', 'logout', 'status'] }
const commands = ['', 'create', 'get', 'list', 'delete', 'serve', 'openapi', 'tokens', 'auth'].concat(
  Object.entries(groups).flatMap(([group, names]) => names.map((name) => `${group} ${name}`)),
)
const [runBlock = '', testBlock = '', ...blocksOfPlants] = blocks

describe('the README', () => {
  test('begins with the two commands: one runs the main job, one the tests', () => {
    expect(runBlock).toBe('npm ci && npx plants create --id 1 --name Fern\n')
    expect(read('.ci/run').split('\n')).toContain(testBlock.trim())
  })

  test('shows commands that work, in the order in which they stand there', async () => {
    const folder = temporaryFolder()
    for (const block of ['plants create --id 1 --name Fern\n', ...blocksOfPlants]) {
      const { exitCode, stderr } = await shell(block, folder)
      expect({ block, exitCode, stderr }).toEqual({ block, exitCode: 0, stderr: '' })
    }
  })

  test('names the npm scripts that there are', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const told = [...readme.matchAll(/^\| `npm (?:run )?([\w:]+)/gm)].map((match) => match[1])
    expect(told.toSorted()).toEqual(
      Object.keys(scripts)
        .filter((script) => script !== 'prepare')
        .toSorted(),
    )
  })

  test('lists every flag of every command, and no other', async () => {
    const helps = await Promise.all(commands.map(help))
    const real = flagsIn(helps.join('\n'))
    const told = flagsIn(readme.replaceAll(/`npm [^`]*`/g, ''))
    expect([...told].filter((flag) => !real.has(flag))).toEqual([])
    expect([...real].filter((flag) => !told.has(flag))).toEqual([])
  })

  test('lists every exit code and every error value', () => {
    const kinds = [...read('src/errors.ts').matchAll(/\{ error: (\d+), exitCode: (\d+) \}/g)]
    const rows = [...readme.matchAll(/^\| (\d+(?:, \d+)*) \|.*\|(.*)\|$/gm)]
    const codes = rows.map((row) => row[1])
    expect(codes).toEqual(['0', ...new Set(kinds.map((kind) => kind[2]))].toSorted((a, b) => Number(a) - Number(b)))
    for (const [, error = '', exitCode] of kinds) {
      const cell = rows.find((row) => row[1] === exitCode)?.[2] ?? ''
      expect(cell).toContain(error)
    }
  })

  test('lists every environment variable that is read', () => {
    const sources = sourceFiles().map(read).join('\n')
    const used = new Set([...sources.matchAll(/env\['(\w+)'\]/g)].map((match) => match[1] ?? ''))
    expect([...used].filter((name) => name !== 'TERM' && !readme.includes(`\`${name}\``))).toEqual([])
  })
})

test.each(commands.filter((command) => !command.includes(' ')))('the examples in the help of "%s" work', async (command) => {
  const examples = (await help(command)).split(/^Examples?:$/m)[1]?.split('\n') ?? []
  const lines = examples.filter((line) => line.includes('plants'))
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) {
    const folder = temporaryFolder()
    await shell(`echo '{"id":9,"name":"Fern"}' > fern.json; echo SECRET-of-the-example > token.txt`, folder)
    if (!line.includes('plants create'))
      await shell('plants create --id 1 --name Fern; plants tokens create; plants tokens create --store ./garden.db', folder)
    if (line.includes('auth status')) await shell(line.replace('status', 'login --with-token < token.txt'), folder)
    const { exitCode, stderr } = await shell(unattended(line), folder)
    expect({ line, exitCode, stderr }).toEqual({ line, exitCode: 0, stderr: '' })
  }
})

/** An example that ends without somebody who answers or stops it. */
function unattended(line: string): string {
  if (line.includes('delete') && !line.includes('--yes')) return `${line} --yes`
  if (line.includes('auth login') && !line.includes('--with-token')) return `${line} --with-token < token.txt`
  if (!line.includes('plants serve')) return line
  return `${line} --port 0 > address.txt 2> log.txt & until grep -q http address.txt; do kill -0 $!; done; kill $!; wait $!`
}

async function help(command = ''): Promise<string> {
  return (await plants([...command.split(' ').filter(Boolean), '--help'], temporaryFolder())).out
}

function flagsIn(text: string): Set<string> {
  return new Set([...text.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map((match) => match[0]))
}

/** Runs lines in a shell that knows `plants`, each of which must work. */
async function shell(lines: string, folder: string) {
  const path = join(folder, 'bin')
  if (!existsSync(path)) {
    mkdirSync(path)
    symlinkSync(bin, join(path, 'plants'))
  }
  const env = { PATH: `${path}:${process.env['PATH']}`, HOME: folder, PLANTS_DATA_DIR: join(folder, 'data') }
  return execa('bash', ['-euo', 'pipefail', '-c', lines], { cwd: folder, env, extendEnv: false, reject: false, stdin: 'ignore' })
}

function sourceFiles(): string[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join('src', name))
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
