import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { isHere } from '../helpers/programs.js'
import { temporaryFolder } from '../helpers/temporary.js'

const root = join(import.meta.dirname, '../..')
const isRoot = process.getuid?.() === 0
const executable = 'plants-linux-x64'

test.skipIf(!isHere('buildah') || !isRoot || process.arch !== 'x64')(
  'the container image has the executable and nothing else, runs as a user without rights, and is checked and stopped without a shell (needs buildah)',
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
      Healthcheck: { Test: ['CMD', '/usr/local/bin/plants', 'doctor', '--output', 'json'] },
      StopSignal: 'SIGTERM',
    })
    const container = await buildah('from', image)
    const place = await buildah('mount', container)
    const { stdout } = await execa('find', ['.', '-type', 'f', '-printf', '%m %p\\n'], { cwd: place })
    expect(stdout.split('\n').toSorted()).toEqual([
      '644 ./usr/share/doc/plants/LICENSES.txt',
      '755 ./usr/local/bin/plants',
    ])
    const [inside, outside] = [join(place, 'usr/local/bin/plants'), join(root, 'release', executable)]
    expect(readFileSync(inside).equals(readFileSync(outside))).toBe(true)
    await buildah('umount', container)
  },
)
