import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { findExecutable } from '../../../bench/executable.mjs'
import packageJson from '../../../package.json'
import { listTopics } from '../../../src/cli/topics.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const root = join(import.meta.dirname, '../../..')
const file = findExecutable() ?? ''
const folder = dirname(file)
const licences = 'LICENSES.txt'
const sbom = 'sbom.cdx.json'

test('the executable comes with licences and a bill of materials, and with nothing else', () => {
  expect(readdirSync(folder).toSorted()).toEqual([licences, basename(file), sbom])
})

test('the executable prints the pages that the package prints', async () => {
  const program = join(root, 'bin/plants.js')
  for (const [topic] of listTopics()) {
    const [{ stdout }, { stdout: expected }] = await Promise.all([
      execa(file, ['help', topic]),
      execa(process.execPath, [program, 'help', topic]),
    ])
    expect(stdout).toBe(expected)
  }
})

/** Returns the version of the SQLite that the driver brings. */
function readSqliteVersion(): unknown {
  return new DatabaseSync(':memory:').prepare('SELECT sqlite_version() AS version').get()?.[
    'version'
  ]
}

interface Sbom {
  bomFormat: string
  specVersion: string
  metadata: { component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

interface Component {
  type: string
  'bom-ref': string
  name: string
  version: string
  purl: string
}

const sboms = [
  { of: 'package', path: join(root, 'dist', sbom) },
  { of: 'executable', path: join(folder, sbom) },
]

function readSbom(path: string): Sbom {
  return JSON.parse(readFileSync(path, 'utf8'))
}

test('the bill of materials names each bundled package, the driver with its SQLite, and Bun', async () => {
  const bundled = (await findBundledPackages()).map(({ name, version, license }) => {
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
    const licenses = [{ expression: license }]
    return { type: 'library', 'bom-ref': purl, name, version, purl, licenses }
  })
  const byRef = new Map(bundled.map((component) => [component['bom-ref'], component]))
  const [ofPackage, ofExecutable] = sboms.map(({ path }) => readSbom(path).components)
  const own = ofPackage?.filter(({ purl }) => byRef.has(purl))
  expect(own).toEqual([...byRef.keys()].toSorted().map((ref) => byRef.get(ref)))
  const driver = ofPackage?.filter(({ purl }) => !byRef.has(purl))
  expect(driver?.map(({ name, version }) => [name, version])).toEqual([
    ['sqlite', readSqliteVersion()],
    ['@photostructure/sqlite', packageJson.dependencies['@photostructure/sqlite']],
  ])
  expect(bundled.map(({ name }) => name)).toContain('rolldown')
  const bun = { name: 'bun', version: packageJson.devDependencies.bun }
  const more = ofExecutable?.filter(({ purl }) => !byRef.has(purl))
  expect(more).toEqual([expect.objectContaining(bun)])
  expect(ofExecutable).toHaveLength(byRef.size + 1)
})

test.each(sboms)('the bill of materials of the $of is about the program', ({ path }) => {
  const content = readSbom(path)
  expect([content.bomFormat, content.specVersion]).toEqual(['CycloneDX', '1.6'])
  const { name, version } = packageJson
  const { component } = content.metadata
  expect(component).toMatchObject({ type: 'application', name, version })
  const dependsOn = content.components.map((library) => library['bom-ref'])
  expect(content.dependencies).toEqual([{ ref: component['bom-ref'], dependsOn }])
})

test('the licence of every package comes with the executable and with the package', async () => {
  const packages = await findBundledPackages()
  const without = packages.filter(({ texts }) => texts.length === 0)
  expect(without.map(({ name }) => name)).toEqual(['saxes'])
  const holders = [
    'Copyright (c) Contributors',
    'Copyright (c) Isaac Z. Schlueter and Contributors',
  ]
  for (const notices of [join(folder, licences), join(root, 'dist/THIRD-PARTY.txt')]) {
    const sections = readFileSync(notices, 'utf8').split(/^-{80}\n/m)
    // Packages with the same licence share a section. Its first lines are their titles.
    const byTitle = new Map<string | undefined, string>(
      sections.flatMap((text) => {
        const [titles = ''] = text.split('\n\n', 1)
        return titles.split('\n').map((title) => [title, normalizeSpace(text)] as const)
      }),
    )
    const incomplete = packages.filter(({ title, texts }) => {
      const section = byTitle.get(title)
      return section === undefined || texts.some((text) => !section.includes(text))
    })
    expect(incomplete.map(({ title }) => title)).toEqual([])
    const saxes = packages.find(({ name }) => name === 'saxes')?.title
    const section = byTitle.get(saxes) ?? ''
    expect([...holders, 'hereby granted'].filter((text) => !section.includes(text))).toEqual([])
  }
})

test.skipIf(!isInstalled('buildah') || process.getuid?.() !== 0 || process.arch !== 'x64')(
  'the image has the executable and its licences, and runs as a user without rights (needs buildah)',
  async () => {
    const home = createTemporaryFolder()
    const storage = join(home, 'storage.conf')
    const roots = `graphroot = "${join(home, 'images')}"\nrunroot = "${join(home, 'run')}"`
    writeFileSync(storage, `[storage]\ndriver = "vfs"\n${roots}\n`)
    const options = { cwd: root, env: { CONTAINERS_STORAGE_CONF: storage } }
    const buildah = async (line: string) =>
      (await execa('buildah', line.split(' '), options)).stdout
    // With an empty base instead of that of a registry, the image has what this project puts there.
    const flags = '--isolation chroot --format docker --from scratch'
    const image = await buildah(`build --quiet ${flags} --file deploy/Dockerfile release`)
    const { Docker } = JSON.parse(await buildah(`inspect --type image ${image}`))
    const program = '/usr/local/bin/plants'
    expect(Docker.config).toMatchObject({
      User: '65532:65532',
      Env: expect.arrayContaining(['HOME=/home/nonroot', 'PLANTS_DATA_DIR=/home/nonroot']),
      Volumes: { '/home/nonroot': {} },
      Entrypoint: [program],
      Cmd: ['serve', '--host', '0.0.0.0'],
      Healthcheck: { Test: ['CMD', program, 'list', '--limit', '1', '--output', 'json'] },
      StopSignal: 'SIGTERM',
    })
    const mountPoint = await buildah(`mount ${await buildah(`from ${image}`)}`)
    const find = ['.', '-type', 'f', '-printf', '%m %p\\n']
    const { stdout } = await execa('find', find, { cwd: mountPoint })
    expect(stdout.split('\n').toSorted()).toEqual([
      `644 ./usr/share/doc/plants/${licences}`,
      `644 ./usr/share/doc/plants/${sbom}`,
      `755 .${program}`,
    ])
    const built = readFileSync(join(root, 'release/plants-linux-x64'))
    expect(readFileSync(join(mountPoint, program)).equals(built)).toBe(true)
    await buildah('umount --all')
  },
)

/**
 * Finds the packages that the bundler's source maps name, with their titles in the notices and the
 * words of their licences.
 */
async function findBundledPackages() {
  const out = createTemporaryFolder()
  const args = ['--config', 'rolldown.config.mjs', '--dir', out, '--sourcemap']
  await execa('rolldown', args, { cwd: root, preferLocal: true })
  const maps = readdirSync(out).filter((name) => name.endsWith('.map'))
  const texts = maps.map((name) => readFileSync(join(out, name), 'utf8'))
  const sources = texts.flatMap((text) => JSON.parse(text).sources as string[])
  const inside = /node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/
  const folders = sources.flatMap((source) => inside.exec(source)?.[0] ?? [])
  // The source maps leave out the helpers of the bundler, which are in a chunk of their own.
  const all = new Set([...folders, 'node_modules/rolldown'])
  return [...all].map((path) => {
    const text = readFileSync(join(root, path, 'package.json'), 'utf8')
    const { name, version, license } = JSON.parse(text)
    return {
      name,
      version,
      license,
      title: `${name} ${version} (${license})`,
      texts: readLicences(join(root, path)),
    }
  })
}

/** Reads whole files, or what a README grants: from its copyright to its disclaimer. */
function readLicences(path: string): string[] {
  const readTexts = (pattern: RegExp) =>
    readdirSync(path)
      .filter((name) => pattern.test(name))
      .map((name) => normalizeSpace(readFileSync(join(path, name), 'utf8')))
  const files = readTexts(/^(?=.*(?:licen[cs]e|copying|notice))[^.]+(\.\w+)?$/i)
  const granted = /Copyright \(c\) \d{4}.* Permission is .* IN THE SOFTWARE\./i
  return files.length > 0
    ? files
    : readTexts(/^readme/i).flatMap((text) => granted.exec(text)?.[0] ?? [])
}

function normalizeSpace(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
