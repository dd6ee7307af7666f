import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { fetchNode } from '../../bench/nodes.mjs'
import { man } from '../../package.json'
import { PlantsCommand } from '../../src/cli/command.js'
import { blocksOf, commandNames, pages, placeholders, program } from '../helpers/documents.js'
import { ownService, token } from '../helpers/http-store.js'
import { isHere } from '../helpers/programs.js'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')

test('the package holds what runs, its licences and its documentation, in 480 KB', async () => {
  const folder = temporaryFolder()
  const archive = await pack(folder)
  expect(statSync(archive).size).toBeLessThanOrEqual(480_000)
  await execa('tar', ['-xzf', archive, '-C', folder])
  const inside = join(folder, 'package')
  const entries = readdirSync(inside, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const paths = entries.map(({ name, parentPath }) => join(parentPath, name))
  const expected = [
    ...['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'],
    ...['bin/code-cache.js', 'bin/plants.js'],
    ...['dist', 'docs', 'man'].flatMap((name) =>
      readdirSync(join(root, name)).map((file) => `${name}/${file}`),
    ),
  ]
  expect(paths.map((path) => relative(inside, path)).toSorted()).toEqual(expected.toSorted())
  expect(expected.filter((name) => !/\.js$/.test(name) && name.startsWith('dist/'))).toEqual([
    'dist/THIRD-PARTY.txt',
  ])
  // no address leads nowhere
  const texts = paths.map((path) => readFileSync(path, 'utf8'))
  expect(texts.flatMap(placeholders)).toEqual([])
  expect(
    placeholders(texts.join('\n').replaceAll('plants.example.com', 'plants.example')),
  ).not.toEqual([])
  // it needs the driver of SQLite alone, and installing it runs nothing of its own
  const { dependencies, optionalDependencies, peerDependencies, scripts } = JSON.parse(
    readFileSync(join(inside, 'package.json'), 'utf8'),
  )
  expect({ needs: Object.keys(dependencies), optionalDependencies, peerDependencies }).toEqual({
    needs: ['@photostructure/sqlite'],
  })
  expect(Object.keys(scripts).filter((name) => /install$|^prepare$/.test(name))).toEqual([])
})

test('the package has a manual page for each command', () => {
  const pages = ['plants', ...commandNames.map((name) => `plants-${name}`).toSorted()].map(
    (name) => `man/${name}.1`,
  )
  expect(man).toEqual(pages)
  expect(
    readdirSync(join(root, 'man'))
      .map((name) => `man/${name}`)
      .toSorted(),
  ).toEqual(pages.toSorted())
  const title = /^\.TH [A-Z-]+ 1 "" "plants \d+\.\d+\.\d+" "plants"\n/
  for (const page of pages) expect(readFileSync(join(root, page), 'utf8')).toMatch(title)
  const option = '.TP\n.B \\-y, \\-\\-yes\ndo not ask for confirmation\n'
  expect(readFileSync(join(root, 'man/plants-delete.1'), 'utf8')).toContain(option)
})

test.skipIf(!isHere('groff'))(
  'groff finds no error in a manual page, and shows examples as they are (needs groff)',
  async () => {
    const groff = ['-man', '-Tutf8', '-ww', '-P-cbou']
    const texts = await Promise.all(man.map((page) => execa('groff', [...groff, join(root, page)])))
    expect(texts.map(({ stderr }) => stderr).join('')).toBe('')
    for (const command of program.commands.filter((each) => each.name() !== 'help'))
      for (const example of command instanceof PlantsCommand ? command.examples : [])
        expect(texts.map(({ stdout }) => stdout).join()).toContain(example)
  },
)

test('publint and attw find no fault in the package', async () => {
  const archive = await pack(temporaryFolder())
  // publint colours what it prints wherever CI is set
  const options = { cwd: root, env: { NO_COLOR: '1' }, preferLocal: true, reject: false }
  const publint = await execa('publint', ['run', archive, '--strict'], options)
  expect({ code: publint.exitCode, last: publint.stdout.split('\n').at(-1) }).toEqual({
    code: 0,
    last: 'All good!',
  })
  const attw = [
    'exec',
    '--yes',
    '--package',
    '@arethetypeswrong/cli@0.18.5',
    '--',
    'attw',
    archive,
    '--no-color',
  ]
  const types = await execa('npm', attw, options)
  expect({ code: types.exitCode, out: types.stdout }).toEqual({
    code: 0,
    out: expect.stringContaining('This package does not contain types'),
  })
})

test.runIf(process.platform === 'linux' && process.arch === 'x64').each(['12', '18', '20.18'])(
  'Node.js %s is named as too old, in one sentence',
  async (version) => {
    const node = fetchNode(version)
    const { stdout: name } = await execa(node, ['--version'])
    const { exitCode, stdout, stderr } = await execa(
      node,
      [join(root, 'bin/plants.js'), '--version'],
      {
        reject: false,
      },
    )
    const sentence = `plants needs Node.js 20.19 or newer; this is ${name.slice(1)}`
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 70, stdout: '', stderr: sentence })
  },
)

test('the recipe for CI installs the package, and imports with it at every push', async () => {
  const folder = temporaryFolder()
  await pack(folder)
  writeFileSync(join(folder, 'plants.csv'), 'id,name\n1,Fern\n')
  const [recipe] = blocksOf(pages.get('docs/recipes.md') ?? '').filter(
    ({ language }) => language === 'yaml',
  )
  const { jobs } = parse(recipe?.text ?? '') as { jobs: { plants: { steps: { run?: string }[] } } }
  const steps = jobs.plants.steps.flatMap(({ run }) => (run === undefined ? [] : [run]))
  const prefix = join(folder, 'prefix')
  const PLANTS_STORE = await ownService({ host: '127.0.0.1', port: 0 }, join(folder, 'served.db'))
  const env = {
    ...(await registrySettings()),
    ...{
      PATH: `${join(prefix, 'bin')}:${process.env['PATH']}`,
      HOME: folder,
      CI: 'true',
      npm_config_prefix: prefix,
    },
    ...{ PLANTS_STORE, PLANTS_TOKEN: token },
  }
  const results: unknown[] = []
  for (const step of [...steps, ...steps, 'plants get 1']) {
    const options = { cwd: folder, env, extendEnv: false, reject: false }
    const { exitCode, stdout } = await execa('bash', ['-e', '-c', step], options)
    results.push({
      step,
      exitCode,
      created: /"created":\d+/.exec(stdout)?.[0],
      plant: /^\{"id":.*/.exec(stdout)?.[0],
    })
  }
  const install = { step: 'npm install --global --ignore-scripts ./plant-store-*.tgz', exitCode: 0 }
  const [one, none] = ['"created":1', '"created":0'].map((created) => ({ exitCode: 0, created }))
  expect(results).toMatchObject([
    ...[install, one, one],
    ...[install, one, none], // at a service, a dry run checks the input alone
    { exitCode: 0, plant: '{"id":1,"name":"Fern"}' },
  ])
  expect(readdirSync(join(prefix, 'share/man/man1'))).toContain('plants-create.1')
})

test('the first command of the README works in a copy of the tree, in an empty home', async () => {
  const [folder, home] = [temporaryFolder(), temporaryFolder()]
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { stdout: listed } = await execa('git', list, { cwd: root })
  for (const file of listed.split('\0'))
    if (file !== '' && existsSync(join(root, file))) cpSync(join(root, file), join(folder, file))
  const [first] = blocksOf(pages.get('README.md') ?? '')
  const env = { ...(await registrySettings()), PATH: process.env['PATH'], HOME: home, CI: 'true' }
  const options = { cwd: folder, env, extendEnv: false, reject: false }
  const { exitCode, stdout } = await execa('bash', ['-e', '-c', first?.text ?? ''], options)
  expect({ exitCode, plant: stdout.split('\n').at(-1) }).toEqual({
    exitCode: 0,
    plant: '{"name":"Fern"}',
  })
})

/** Packs what is built; without `prepack`, which would build it under the feet of other tests. */
async function pack(folder: string): Promise<string> {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder]
  const { stdout } = await execa('npm', args, { cwd: root })
  return join(folder, stdout.trim())
}

/** Where packages come from, and who is trusted there: what this user has set, which an empty home does not say. */
async function registrySettings(): Promise<Record<string, string | undefined>> {
  const names = Object.keys(process.env).filter((name) => /^(https?|no)_proxy$/i.test(name))
  const { stdout } = await execa('npm', ['config', 'list', '--json', '--silent'], { cwd: root })
  const { registry, cafile } = JSON.parse(stdout)
  return {
    ...Object.fromEntries(names.map((name) => [name, process.env[name]])),
    npm_config_registry: registry,
    npm_config_cafile: cafile ?? process.env['SSL_CERT_FILE'],
  }
}
