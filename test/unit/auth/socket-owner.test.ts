import { chmodSync, lchownSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { resolveSettings } from '../../../src/cli/context.js'
import { accessTo } from '../../../src/cli/store-access.js'
import { RemoteStore } from '../../../src/stores/http/remote-store.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { ioOf } from '../../helpers/run.js'
import { createPlant } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

const token = 's3cret-of-a-socket'
const isRoot = process.getuid?.() === 0
const reason = isRoot ? '' : ' (needs root)'

/**
 * Makes what a layout says in a folder that others may enter: paths with the mode of a folder, the target of a link, or
 * `socket`, where a service keeps what it is sent, and the id of the owner, if that is not root.
 */
async function layOut(layout: string): Promise<{ home: string; service: Hostile }> {
  const home = temporaryFolder()
  chmodSync(home, 0o755)
  let service: Hostile | undefined
  for (const entry of layout.split(', ')) {
    const [name = '', what = '', owner = '0'] = entry.split(' ')
    const path = join(home, name)
    if (what === 'socket') service = await Hostile.listen({ posts: [json(200, { name: 'Fern' })], place: { path } })
    else if (what.startsWith('->')) symlinkSync(what.slice(2), path)
    else {
      mkdirSync(path)
      chmodSync(path, parseInt(what, 8))
    }
    lchownSync(path, parseInt(owner, 10), parseInt(owner, 10))
  }
  if (service === undefined) throw new Error('There is no socket')
  return { home, service }
}

const create = 'create --id 1 --name Fern --timeout 2s --store'

describe.skipIf(!isRoot)(`a token goes to a Unix socket${reason}`, () => {
  test.each([
    ['of this user in a folder with the sticky bit', 'shared/s', 'shared 1777, shared/s socket'],
    ['of another user in a folder of root', 'run/s', 'run 755, run/s socket 1234'],
    ['of another user in their folder, below one of root', 'own/s', 'own 755 1234, own/s socket 1234'],
    ['in a folder of mode 777 below one of mode 700', 'own/sub/s', 'own 700, own/sub 777, own/sub/s socket'],
    ['behind a link of this user', 'tmp/l', 'tmp 1777, run 755, run/s socket 1234, tmp/l ->../run/s'],
  ])('%s', async (_, path, layout) => {
    const { home, service } = await layOut(layout)
    const { code, err } = await new World().run(`${create} unix:${home}/${path}`, { env: { PLANTS_TOKEN: token } })
    expect({ code, err, posts: service.posts.length }).toEqual({ code: 0, err: '', posts: 1 })
  })
})

describe.skipIf(!isRoot)(`a token does not go to a Unix socket that another user may have put there${reason}:`, () => {
  const ofOther = (path: string) => `FOLDER/${path} belongs to another user (uid 1234)`
  const replaceable = 'other users can replace what is in FOLDER/shared (mode 777)'

  test.each([
    ['their own', 'shared/s', 'shared 1777, shared/s socket 1234', ofOther('shared/s')],
    ['below a folder of mode 777', 'shared/a/s', 'shared 777, shared/a 700, shared/a/s socket', replaceable],
    ['behind their link', 'shared/l', 'shared 1777, s socket, shared/l ->../s 1234', ofOther('shared/l')],
    ['behind a link to the shared folder', 'l/s', 'shared 1777, shared/s socket 1234, l ->shared', ofOther('shared/s')],
  ])('%s', async (_, path, layout, reason) => {
    const { home, service } = await layOut(layout)
    const address = `unix:${home}/${path}`
    const why = reason.replace('FOLDER', home)
    const user = new World()
    const options = { env: { PLANTS_TOKEN: token }, stdin: token }
    for (const line of [create, 'auth login --with-token --store']) {
      const { code, out, err } = await user.run(`${line} ${address}`, options)
      const first = `plants: The token is not sent to ${address}: ${why}`
      expect({ code, out, err: err.split('\n')[0] }).toEqual({ code: 2, out: '', err: first })
    }
    expect((await user.run(`doctor --timeout 2s --store ${address}`, options)).out).toContain(why)
    expect(service.bytes.toString()).not.toContain(token)
    expect((await user.run(`${create} ${address} --allow-http`, options)).code).toBe(0)
  })

  test('one that came after the first look', async () => {
    const { home, service } = await layOut('shared 1777, shared/later socket 1234')
    const path = join(home, 'shared/s')
    const io = ioOf({ env: { ...new World().env, PLANTS_TOKEN: token, PLANTS_TIMEOUT: '200ms' } })
    const settings = await resolveSettings({ store: `unix:${path}` }, io)
    if (settings.store.scheme !== 'remote') throw new Error('It is no service')
    const access = await accessTo(settings.store, settings, io)
    const store = await RemoteStore.open(settings.store, { ...settings.storeOptions, access: async () => access })
    renameSync(join(home, 'shared/later'), path)
    await expect(createPlant(store, { id: 1n, name: 'Fern' })).rejects.toMatchObject({
      type: 'malformed',
      message: `The token is not sent to unix:${path}: ${path} belongs to another user (uid 1234)`,
    })
    await store.close()
    expect(service.connections).toBe(0)
  })
})
