import { chmodSync, chownSync, lchownSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { resolveSettings } from '../../../src/cli/context.js'
import { accessTo } from '../../../src/cli/store-access.js'
import { RemoteStore } from '../../../src/stores/http/remote-store.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { ioOf } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

const token = 's3cret-of-a-socket'
const stranger = 1234
const isRoot = process.getuid?.() === 0
const reason = isRoot ? '' : ' (needs root)'

/** A folder with a mode, of a user. */
function folderOf(path: string, mode: number, uid = 0): string {
  mkdirSync(path)
  chmodSync(path, mode)
  chownSync(path, uid, uid)
  return path
}

/** A folder that others may enter. */
function openFolder(): string {
  const folder = temporaryFolder()
  chmodSync(folder, 0o755)
  return folder
}

/** A socket of a user, where a service listens that would write down a token. */
async function socketOf(path: string, uid = 0): Promise<Hostile> {
  const service = await Hostile.listen({ posts: [json(200, { name: 'Fern' })], place: { path } })
  chownSync(path, uid, uid)
  return service
}

const create = ['create', '--id', '1', '--name', 'Fern', '--timeout', '2s', '--store']

describe.skipIf(!isRoot)(`a token goes to a Unix socket${reason}`, () => {
  test.each<[string, (folder: string) => Promise<[string, Hostile]>]>([
    ['of this user', async (folder) => [join(folder, 's'), await socketOf(join(folder, 's'))]],
    [
      'of this user in a shared folder where each may remove only what is theirs',
      async (folder) => {
        const path = join(folderOf(join(folder, 'shared'), 0o1777), 's')
        return [path, await socketOf(path)]
      },
    ],
    [
      'of another user, where only root could put it',
      async (folder) => {
        const path = join(folderOf(join(folder, 'run'), 0o755), 's')
        return [path, await socketOf(path, stranger)]
      },
    ],
    [
      'of a system user, in a folder that root has given to that user',
      async (folder) => {
        const path = join(folderOf(join(folder, 'plants'), 0o755, stranger), 's')
        return [path, await socketOf(path, stranger)]
      },
    ],
    [
      'in a folder that everybody may write, below one that nobody else may enter',
      async () => {
        const path = join(folderOf(join(temporaryFolder(), 'shared'), 0o777), 's')
        return [path, await socketOf(path)]
      },
    ],
    [
      'that a link of this user leads to',
      async (folder) => {
        const service = await socketOf(join(folderOf(join(folder, 'run'), 0o755), 's'), stranger)
        const path = join(folderOf(join(folder, 'shared'), 0o1777), 'l')
        symlinkSync('../run/s', path)
        return [path, service]
      },
    ],
  ])('%s', async (_, make) => {
    const [path, service] = await make(openFolder())
    const { code, err } = await new World().run([...create, `unix:${path}`], { env: { PLANTS_TOKEN: token } })
    expect({ code, err, posts: service.posts.length }).toEqual({ code: 0, err: '', posts: 1 })
  })
})

describe.skipIf(!isRoot)(`a token goes to no Unix socket that another user may have put there${reason}:`, () => {
  test.each<[string, string, (folder: string) => Promise<[string, Hostile]>]>([
    [
      'their own, in a shared folder',
      'FOLDER/shared/s belongs to another user (uid 1234)',
      async (folder) => {
        const path = join(folderOf(join(folder, 'shared'), 0o1777), 's')
        return [path, await socketOf(path, stranger)]
      },
    ],
    [
      'in a folder that everybody may write',
      'other users can replace what is in FOLDER/shared (mode 777)',
      async (folder) => {
        const path = join(folderOf(join(folder, 'shared'), 0o777), 's')
        return [path, await socketOf(path)]
      },
    ],
    [
      'in a folder that a group may write',
      'other users can replace what is in FOLDER/shared (mode 775)',
      async (folder) => {
        const path = join(folderOf(join(folder, 'shared'), 0o775), 's')
        return [path, await socketOf(path)]
      },
    ],
    [
      'in a folder below one that everybody may write',
      'other users can replace what is in FOLDER/shared (mode 777)',
      async (folder) => {
        const path = join(folderOf(join(folderOf(join(folder, 'shared'), 0o777), 'own'), 0o700), 's')
        return [path, await socketOf(path)]
      },
    ],
    [
      'in a folder that they have made in a shared one',
      'FOLDER/shared/plants belongs to another user (uid 1234)',
      async (folder) => {
        const path = join(folderOf(join(folderOf(join(folder, 'shared'), 0o1777), 'plants'), 0o755, stranger), 's')
        return [path, await socketOf(path, stranger)]
      },
    ],
    [
      'where their link in a shared folder leads',
      'FOLDER/shared/l belongs to another user (uid 1234)',
      async (folder) => {
        const service = await socketOf(join(folder, 's'))
        const path = join(folderOf(join(folder, 'shared'), 0o1777), 'l')
        symlinkSync('../s', path)
        lchownSync(path, stranger, stranger)
        return [path, service]
      },
    ],
    [
      'where a link of this user leads to their socket',
      'FOLDER/shared/s belongs to another user (uid 1234)',
      async (folder) => {
        const service = await socketOf(join(folderOf(join(folder, 'shared'), 0o1777), 's'), stranger)
        symlinkSync('shared', join(folder, 'l'))
        return [join(folder, 'l/s'), service]
      },
    ],
  ])('%s', async (_, why, make) => {
    const folder = openFolder()
    const [path, service] = await make(folder)
    const user = new World()
    const { PLANTS_CONFIG_DIR } = user.env
    const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR }
    const message = `The token is not sent to unix:${path}: ${why.replace('FOLDER', folder)}`
    for (const argv of [
      [...create, `unix:${path}`],
      ['auth', 'login', '--with-token', '--store', `unix:${path}`],
    ]) {
      const { code, out, err } = await user.run(argv, { env, stdin: token })
      expect({ code, out, err: err.split('\n')[0] }).toEqual({ code: 2, out: '', err: `plants: ${message}` })
    }
    const { out } = await user.run(['doctor', '--store', `unix:${path}`, '--timeout', '2s'], { env })
    expect(out).toContain(why.replace('FOLDER', folder))
    expect(service.bytes.toString()).not.toContain(token)
    expect((await user.run([...create, `unix:${path}`, '--allow-http'], { env })).code).toBe(0)
  })

  test('one that came after the first look', async () => {
    const folder = folderOf(join(openFolder(), 'shared'), 0o1777)
    const path = join(folder, 's')
    const service = await socketOf(join(folder, 'later'), stranger)
    const io = ioOf({ env: { ...new World().env, PLANTS_TOKEN: token, PLANTS_TIMEOUT: '200ms' } })
    const settings = await resolveSettings({ store: `unix:${path}` }, io)
    if (settings.store.scheme !== 'remote') throw new Error('It is no service')
    const access = await accessTo(settings.store, settings, io)
    const store = await RemoteStore.open(settings.store, { ...settings.storeOptions, access: async () => access })
    renameSync(join(folder, 'later'), path)
    await expect(store.create({ id: 1n, name: 'Fern' })).rejects.toMatchObject({
      type: 'unavailable',
      message: `The token is not sent to unix:${path}: ${path} belongs to another user (uid ${stranger})`,
    })
    await store.close()
    expect(service.connections).toBe(0)
  })
})
