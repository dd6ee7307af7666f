import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execa, type Options } from 'execa'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { fetchNode, versions } from '../../../bench/nodes.mjs'
import { man } from '../../../package.json'
import { PlantsCommand } from '../../../src/cli/command.js'
import { commandNames, findBlocks, pages, program } from '../../helpers/expect/documents.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { serveFile, token } from '../../helpers/scripted-server/service.js'

const root = join(import.meta.dirname, '../../..')

/** Packs what is built, without `prepack`, which would build it while other tests use it. */
async function pack(folder: string): Promise<string> {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder]
  const { stdout } = await execa('npm', args, { cwd: root })
  return join(folder, stdout.trim())
}

test('the package has the program, its licences and its pages for users, in 600 KB', async () => {
  const folder = createTemporaryFolder()
  const archive = await pack(folder)
  expect(statSync(archive).size).toBeLessThanOrEqual(600_000)
  await execa('tar', ['-xzf', archive, '-C', folder])
  const unpacked = join(folder, 'package')
  const listFiles = (name: string): string[] =>
    readdirSync(join(root, name), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? listFiles(`${name}/${entry.name}`) : `${name}/${entry.name}`,
    )
  const isForContributors = (name: string) => /^docs\/(?:design\/|architecture|release)/.test(name)
  const expected = [
    ...['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'],
    ...['bin/code-cache.js', 'bin/plants.js'],
    ...['dist', 'docs', 'man'].flatMap(listFiles),
  ]
    .filter((name) => !isForContributors(name))
    .toSorted()
  const all = readdirSync(unpacked, { recursive: true, encoding: 'utf8' })
  const files = all.filter((path) => statSync(join(unpacked, path)).isFile())
  expect(files.toSorted()).toEqual(expected)
  const texts = ['dist/THIRD-PARTY.txt', 'dist/sbom.cdx.json']
  expect(listFiles('dist').filter((name) => !name.endsWith('.js'))).toEqual(texts)
  const targets = files
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) => findLinks(unpacked, file))
  expect(targets.length).toBeGreaterThan(100)
  expect(targets.filter((path) => !existsSync(join(unpacked, path)))).toEqual([])
  // These addresses lead nowhere (RFC 2606).
  const nowhere = /https?:\/\/[\w.-]+\.(?:example|invalid|test)(?![\w-]|\.\w)/g
  const contents = files.map((path) => readFileSync(join(unpacked, path), 'utf8'))
  expect(contents.flatMap((text) => text.match(nowhere) ?? [])).toEqual([])
  // The package needs only the driver of SQLite, and installing it runs nothing of its own.
  const { dependencies, optionalDependencies, peerDependencies, scripts } = JSON.parse(
    readFileSync(join(unpacked, 'package.json'), 'utf8'),
  )
  expect(Object.keys(dependencies)).toEqual(['@photostructure/sqlite'])
  expect([optionalDependencies, peerDependencies]).toEqual([undefined, undefined])
  expect(Object.keys(scripts).filter((name) => /install$|^prepare$/.test(name))).toEqual([])
})

/** Returns the files that a page links, with paths from the folder of the package on. */
function findLinks(folder: string, page: string): string[] {
  const text = readFileSync(join(folder, page), 'utf8')
  const links = text.matchAll(/\]\((?!https?:|#)(?<target>[^)#\s]+)/g)
  return Array.from(links, ({ groups }) => join(dirname(page), groups?.['target'] ?? ''))
}

test('the package has a manual page for each command', () => {
  const names = ['plants', ...commandNames.map((name) => `plants-${name}`).toSorted()]
  expect(man).toEqual(names.map((name) => `man/${name}.1`))
  const files = names.map((name) => `${name}.1`)
  expect(readdirSync(join(root, 'man')).toSorted()).toEqual(files.toSorted())
})

test.skipIf(!isInstalled('groff'))(
  'groff finds no error in a manual page, and shows examples as they are (needs groff)',
  async () => {
    const groff = ['-man', '-Tutf8', '-ww', '-P-cbou']
    const texts = await Promise.all(man.map((page) => execa('groff', [...groff, join(root, page)])))
    expect(texts.map(({ stderr }) => stderr).join('')).toBe('')
    const shown = texts.map(({ stdout }) => stdout).join()
    const examples = program.commands.flatMap((command) =>
      command instanceof PlantsCommand && command.name() !== 'help' ? command.examples : [],
    )
    expect(examples.filter((example) => !shown.includes(example))).toEqual([])
  },
)

test.runIf(process.platform === 'linux' && process.arch === 'x64').each(['12', '18', '20.18'])(
  'the package on Node.js %s says in one sentence that this version is too old',
  async (version) => {
    const node = fetchNode(version)
    const { stdout: name } = await execa(node, ['--version'])
    const args = [join(root, 'bin/plants.js'), '--version']
    const { exitCode, stdout, stderr } = await execa(node, args, { reject: false })
    const sentence = `plants needs Node.js 20.19 or newer; this is ${name.slice(1)}`
    expect([exitCode, stdout, stderr]).toEqual([70, '', sentence])
  },
)

test.runIf(process.platform === 'linux' && process.arch === 'x64').each(versions)(
  'the package, installed with Node.js %s, creates and imports, and brings only its driver',
  async (version) => {
    const folder = createTemporaryFolder()
    const archive = await pack(folder)
    const node = dirname(fetchNode(version))
    const prefix = join(folder, 'prefix')
    const PATH = [node, join(prefix, 'bin'), process.env['PATH']].join(':')
    const options = await buildBashOptions(folder, folder, { PATH, npm_config_prefix: prefix })
    const data = join(root, 'test/data')
    const importArgs = '--map id= --by-name --quiet'
    const steps = [
      `npm install --global ${archive}`,
      'plants create --id 1 --name Fern',
      `plants import ${data}/libreoffice.xlsx ${importArgs} --store ./workbook.db`,
      `plants import ${data}/libreoffice.ods ${importArgs} --store ./spreadsheet.db`,
    ]
    for (const step of steps) {
      const { exitCode, stderr } = await execa('bash', ['-c', step], options)
      expect({ step, exitCode, stderr }).toMatchObject({ step, exitCode: 0 })
    }
    const packages = readdirSync(join(prefix, 'lib/node_modules/plant-store/node_modules'))
    const expected = ['@photostructure', 'node-addon-api', 'node-gyp-build']
    expect(packages.filter((name) => !name.startsWith('.')).toSorted()).toEqual(expected)
    const { stdout } = await execa('bash', ['-c', 'plants doctor'], options)
    const major = Number(version.split('.')[0])
    const driver =
      major < 24 ? 'SQLite 3.53.0 through @photostructure/sqlite' : 'through node:sqlite'
    expect(stdout).toContain(driver)
  },
)

test('the recipe for CI installs the package, and imports with it at every push', async () => {
  const folder = createTemporaryFolder()
  await pack(folder)
  writeFileSync(join(folder, 'plants.csv'), 'id,name\n1,Fern\n')
  const blocks = findBlocks(pages.get('docs/recipes.md') ?? '')
  const recipe = blocks.find(({ language }) => language === 'yaml')
  const { jobs } = parse(recipe?.text ?? '') as { jobs: { plants: { steps: { run?: string }[] } } }
  const steps = jobs.plants.steps.flatMap(({ run }) => (run === undefined ? [] : [run]))
  const prefix = join(folder, 'prefix')
  const PLANTS_STORE = await serveFile(join(folder, 'served.db'))
  const options = await buildBashOptions(folder, folder, {
    ...{ PATH: `${join(prefix, 'bin')}:${process.env['PATH']}`, npm_config_prefix: prefix },
    ...{ PLANTS_STORE, PLANTS_TOKEN: token },
  })
  const results: unknown[] = []
  for (const step of [...steps, ...steps, 'plants get 1']) {
    const { exitCode, stdout } = await execa('bash', ['-e', '-c', step], options)
    const [match] = /"created":\d+|^\{"id":.*/.exec(String(stdout)) ?? []
    results.push([exitCode, match])
  }
  const created = [0, '"created":1']
  const present = [0, '"created":0']
  expect(results).toEqual([
    ...[[0, undefined], created, created],
    ...[[0, undefined], present, present],
    [0, '{"id":1,"name":"Fern"}'],
  ])
  expect(readdirSync(join(prefix, 'share/man/man1'))).toContain('plants-create.1')
})

/**
 * Builds the options of bash in an empty home, with the registry and the certificates that this
 * user has set for npm.
 */
async function buildBashOptions(
  cwd: string,
  HOME: string,
  more: Record<string, string | undefined>,
) {
  const proxies = Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name))
  const { stdout } = await execa('npm', ['config', 'list', '--json', '--silent'], { cwd: root })
  const { registry, cafile } = JSON.parse(stdout)
  const trusted = cafile ?? process.env['SSL_CERT_FILE']
  const npm = { npm_config_registry: registry, npm_config_cafile: trusted }
  const env = { ...Object.fromEntries(proxies), ...npm, HOME, CI: 'true', ...more }
  return { cwd, env, extendEnv: false, reject: false } satisfies Options
}
