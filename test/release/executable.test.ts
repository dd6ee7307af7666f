import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { findExecutable } from '../../bench/executable.mjs'
import { isHere } from '../helpers/programs.js'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')

describe('the executable', () => {
  const file = findExecutable() ?? ''
  const folder = dirname(file)

  test('comes with licences, and with nothing else', () => {
    expect(readdirSync(folder).toSorted()).toEqual(['LICENSES.txt', basename(file)])
  })

  test('has the licence of every package, and so has the package for Node', async () => {
    const packages = await bundledPackages()
    expect(packages.filter(({ texts }) => texts.length === 0).map(({ name }) => name)).toEqual([
      'proxy-agent-negotiate',
    ])
    for (const notices of [read(folder, 'LICENSES.txt'), read(root, 'dist/THIRD-PARTY.txt')]) {
      const sections = new Map(
        notices.split(/^-{80}\n/m).map((section) => [section.split('\n', 1)[0], words(section)]),
      )
      const incomplete = packages.filter(({ title, texts }) =>
        texts.some((text) => !sections.get(title)?.includes(text)),
      )
      expect(incomplete.map(({ title }) => title)).toEqual([])
      expect(packages.filter(({ title }) => !sections.has(title))).toEqual([])
    }
  })
})

test.skipIf(!isHere('buildah') || process.getuid?.() !== 0 || process.arch !== 'x64')(
  'the container image has the executable alone, and runs it as a user without rights (needs buildah)',
  async () => {
    const folder = temporaryFolder()
    const storage = join(folder, 'storage.conf')
    const roots = `graphroot = "${join(folder, 'images')}"\nrunroot = "${join(folder, 'run')}"`
    writeFileSync(storage, `[storage]\ndriver = "vfs"\n${roots}\n`)
    const buildah = async (...args: string[]) =>
      (await execa('buildah', args, { cwd: root, env: { CONTAINERS_STORAGE_CONF: storage } }))
        .stdout
    // An empty base instead of that of a registry, so that all that the image has is what this project puts there.
    const options =
      '--isolation chroot --format docker --build-arg BASE=scratch --file deploy/Dockerfile'.split(
        ' ',
      )
    const image = await buildah('build', '--quiet', ...options, 'release')
    const { Docker } = JSON.parse(await buildah('inspect', '--type', 'image', image)) as {
      Docker: { config: Record<string, unknown> }
    }
    expect(Docker.config).toMatchObject({
      User: '65532:65532',
      Env: expect.arrayContaining(['HOME=/home/nonroot', 'PLANTS_DATA_DIR=/home/nonroot']),
      Volumes: { '/home/nonroot': {} },
      Entrypoint: ['/usr/local/bin/plants'],
      Cmd: ['serve', '--host', '0.0.0.0'],
      Healthcheck: {
        Test: ['CMD', '/usr/local/bin/plants', 'doctor', '--quick', '--output', 'json'],
      },
      StopSignal: 'SIGTERM',
    })
    const container = await buildah('from', image)
    const place = await buildah('mount', container)
    const { stdout } = await execa('find', ['.', '-type', 'f', '-printf', '%m %p\\n'], {
      cwd: place,
    })
    expect(stdout.split('\n').toSorted()).toEqual([
      '644 ./usr/share/doc/plants/LICENSES.txt',
      '755 ./usr/local/bin/plants',
    ])
    const built = readFileSync(join(root, 'release/plants-linux-x64'))
    expect(readFileSync(join(place, 'usr/local/bin/plants')).equals(built)).toBe(true)
    await buildah('umount', container)
  },
)

interface Bundled {
  name: string
  /** as the notices have it */
  title: string
  /** of its licence, word by word */
  texts: string[]
}

/** The packages that the bundler's source maps name. */
async function bundledPackages(): Promise<Bundled[]> {
  const folder = temporaryFolder()
  const args = ['--config', 'rolldown.config.mjs', '--dir', folder, '--sourcemap']
  await execa('rolldown', args, { cwd: root, preferLocal: true })
  const maps = readdirSync(folder).filter((name) => name.endsWith('.map'))
  const sources = maps.flatMap((name) => JSON.parse(read(folder, name)).sources as string[])
  const folders = sources.flatMap(
    (source) => /node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(source)?.[0] ?? [],
  )
  return [...new Set(folders)].map((entry) => {
    const { name, version, license } = JSON.parse(read(root, join(entry, 'package.json')))
    return { name, title: `${name} ${version} (${license})`, texts: licencesIn(join(root, entry)) }
  })
}

/** Whole files, or what a README grants: from its copyright to its disclaimer. */
function licencesIn(folder: string): string[] {
  const names = readdirSync(folder)
  const files = names.filter(
    (name) => /licen[cs]e|copying|notice/i.test(name) && /^[^.]+(\.(md|txt|\w+))?$/.test(name),
  )
  if (files.length > 0) return files.map((name) => words(read(folder, name)))
  const readmes = names
    .filter((name) => /^readme/i.test(name))
    .map((name) => words(read(folder, name)))
  return readmes.flatMap(
    (text) => /Copyright \(c\) \d{4}.* Permission is .* IN THE SOFTWARE\./i.exec(text)?.[0] ?? [],
  )
}

function words(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

function read(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}
