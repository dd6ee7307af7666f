import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { findExecutable } from '../../bench/executable.mjs'
import { isHere } from '../helpers/programs.js'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')

describe('the executable', () => {
  const file = findExecutable() ?? ''
  const folder = dirname(file)

  test('comes with licences and checksums, which hold', async () => {
    const name = file.slice(folder.length + 1)
    const names = ['LICENSES.txt', name]
    expect(readdirSync(folder).toSorted()).toEqual(['SHA256SUMS', ...names].toSorted())
    const { stdout } = await execa('sha256sum', ['-c', 'SHA256SUMS'], { cwd: folder })
    expect(stdout.split('\n')).toEqual(names.map((entry) => `${entry}: OK`))
  })

  test('names every package in its licences, and so does the package for Node', async () => {
    const packages = await bundledPackages()
    for (const notices of [read(folder, 'LICENSES.txt'), read(root, 'dist/THIRD-PARTY.txt')])
      expect(packages.filter((title) => !notices.includes(`\n${title}\n`))).toEqual([])
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
      (await execa('buildah', args, { cwd: root, env: { CONTAINERS_STORAGE_CONF: storage } })).stdout
    // An empty base instead of that of a registry, so that all that the image has is what this project puts there.
    const options = '--isolation chroot --format docker --build-arg BASE=scratch --file deploy/Dockerfile'.split(' ')
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
      Healthcheck: { Test: ['CMD', '/usr/local/bin/plants', 'doctor', '--quick', '--output', 'json'] },
      StopSignal: 'SIGTERM',
    })
    const container = await buildah('from', image)
    const place = await buildah('mount', container)
    const { stdout } = await execa('find', ['.', '-type', 'f', '-printf', '%m %p\\n'], { cwd: place })
    expect(stdout.split('\n').toSorted()).toEqual([
      '644 ./usr/share/doc/plants/LICENSES.txt',
      '755 ./usr/local/bin/plants',
    ])
    const built = readFileSync(join(root, 'release/plants-linux-x64'))
    expect(readFileSync(join(place, 'usr/local/bin/plants')).equals(built)).toBe(true)
    await buildah('umount', container)
  },
)

/** What the bundler's source maps name: `name version (licence)`. */
async function bundledPackages(): Promise<string[]> {
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
    return `${name} ${version} (${license})`
  })
}

function read(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}
