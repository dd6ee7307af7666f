import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { plants } from './helpers/process.js'
import { blocksOf, readme, sectionOf, shell } from './helpers/readme.js'
import { ownService, token } from './helpers/remote.js'
import { temporaryFolder } from './helpers/temporary.js'

const root = join(import.meta.dirname, '..')
const blocks = blocksOf(sectionOf('Share a database').outside).map(({ text }) => text) // that one is for readme-shared.test.ts
const groups = {
  tokens: ['create', 'list', 'revoke'],
  stores: ['add', 'init', 'list', 'use', 'remove'],
  auth: ['login', 'logout', 'status', 'token'],
  config: ['get', 'set', 'unset', 'list', 'path'],
}
const single = ['create', 'get', 'list', 'delete', 'import', 'export', 'backup', 'restore', 'serve', 'openapi', 'doctor', 'completion']
const commands = ['', ...single, ...Object.keys(groups)].concat(
  Object.entries(groups).flatMap(([group, names]) => names.map((name) => `${group} ${name}`)),
)
const [runBlock = '', testBlock = '', ...blocksOfPlants] = blocks

describe('the README', () => {
  test('begins with the two commands: one runs the main job, one the tests', () => {
    expect(runBlock).toBe('npm ci && npx plants create --id 1 --name Fern\n')
    expect(read('.ci/run')).toContain(`\n${testBlock.replace(' && ', '\n')}`)
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
    const used = new Set([...sources.matchAll(/env\['(\w+)'\]|'(PLANTS_\w+)'/g)].map((match) => match[1] ?? match[2] ?? ''))
    const ofTheSystem = ['HOME', 'TERM', 'LANG', 'LC_ALL', 'LC_CTYPE', 'LOCALAPPDATA', 'SHELL', 'SUDO_UID']
    expect([...used].filter((name) => !ofTheSystem.includes(name) && !readme.includes(`\`${name}\``))).toEqual([])
  })

  test('has tables that say what "plants help environment" does', async () => {
    const page = await topic('environment')
    const settings = tableAt('| setting |')
    const variables = tableAt('| variable |')
    expect(page.match(/ Default: /g)).toHaveLength(settings.length)
    for (const [name, flag, variable, saved, preset, meaning] of settings) {
      const places = [flag === '-' ? '' : `Flag: ${flag}. `, variable === '-' ? '' : `Variable: ${variable}. `]
      expect(page).toContain(` ${name} ${meaning}. ${places.join('')}Saved as: ${saved?.replace(', ', ' or ')}. Default: ${preset}`)
    }
    expect(page.split('Other variables: ')[1]).toBe(
      `${variables.map((row) => row.join(' ')).join(' ')} An empty variable counts as none. See also: plants config list`,
    )
  })

  test('has the exit codes of "plants help exit-codes", in the same words', async () => {
    const rows = tableAt('| exit code |').map(([code, meaning, error]) => `${code} ${meaning}${error === '' ? '' : ` (error ${error})`}`)
    expect(/next\. (.*) See also: /.exec(await topic('exit-codes'))?.[1]).toBe(rows.join(' '))
  })

  test('names each package that the program is made from', () => {
    const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<'dependencies' | 'devDependencies', object>
    const sources = sourceFiles().map(read).join('\n')
    const used = Object.keys({ ...dependencies, ...devDependencies }).filter((name) =>
      RegExp(`(from |import\\()'${name}[/']`).test(sources),
    )
    const [table] = readme.split('| package | what it is for |')[1]?.split('\n\n') ?? []
    expect([...(table ?? '').matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]).toSorted()).toEqual(used.toSorted())
  })
})

test.each(commands.filter((command) => !command.includes(' ')))('the examples in the help of "%s" work', async (command) => {
  const examples = (await help(command)).split(/^Examples?:$/m)[1]?.split('\n') ?? []
  const lines = examples.filter((line) => line.includes('plants'))
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) {
    const folder = temporaryFolder()
    await shell(
      `echo '{"id":9,"name":"Fern"}' | tee fern.json > plants.ndjson; echo CommonName,Family > list.csv; echo ${token} > token.txt`,
      folder,
    )
    if (!line.includes('plants create'))
      await shell(
        'plants create --id 1 --name Fern; plants backup plants.bak; plants tokens create; plants tokens create --store ./garden.db',
        folder,
      )
    const real = line.includes('auth')
      ? line.replace('https://plants.example.com', await ownService({ host: '127.0.0.1', port: 0 }, join(folder, 'served.db')))
      : line
    if (real.includes('auth status')) await shell(real.replace('status', 'login --with-token < token.txt'), folder)
    const { exitCode, stderr } = await shell(unattended(real), folder)
    expect({ line, exitCode, stderr }).toEqual({ line, exitCode: 0, stderr: '' })
  }
})

/** An example that ends without somebody who answers or stops it. */
function unattended(line: string): string {
  if (line.includes('delete') && !line.includes('--yes')) return `${line} --yes`
  if (line.includes('auth login') && !line.includes('--with-token')) return `${line} --with-token < token.txt`
  if (!line.includes('plants serve')) return line
  return `${line} --port 0 > address.txt 2> log.txt & until grep -qs http address.txt; do kill -0 $!; done; kill $!; wait $!`
}

async function help(command = ''): Promise<string> {
  return (await plants([...command.split(' ').filter(Boolean), '--help'], temporaryFolder())).out
}

/** A page of help in one line, whatever the width that it was laid out for. */
async function topic(name: string): Promise<string> {
  return (await plants(['help', name], temporaryFolder())).out.replaceAll(/\s+/g, ' ').trim()
}

/** The rows of the table of the README that has these titles, without its marks. */
function tableAt(titles: string): string[][] {
  const [rows = ''] = readme.slice(readme.indexOf(`\n${titles}`) + 1).split('\n\n')
  const lines = rows.replaceAll('`', '').split('\n').slice(2)
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

function flagsIn(text: string): Set<string> {
  return new Set([...text.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map((match) => match[0]))
}

function sourceFiles(): string[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join('src', name))
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
