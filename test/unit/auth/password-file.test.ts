import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readPasswordFile } from '../../../src/auth/password.js'
import { ioOf } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

const ann = { user: 'ann', database: 'garden' }
const here = { host: 'db.example.com', port: 5432 }

async function read(path: string) {
  const complaints: string[] = []
  const warn = async (message: string) => void complaints.push(message)
  return { file: await readPasswordFile(ioOf({ env: { PGPASSFILE: path } }), warn), complaints }
}

function fileWith(text: string, mode = 0o600): string {
  const user = new World()
  const path = join(user.home, user.write('passwords', text))
  chmodSync(path, mode)
  return path
}

describe('the password file', () => {
  test.each([
    ['db.example.com:5432:garden:ann:right', 'right'],
    ['*:*:*:*:right', 'right'],
    ['other:*:*:*:wrong\n*:5433:*:*:wrong\n*:*:other:*:wrong\n*:*:*:bob:wrong\n*:*:*:ann:right\n*:*:*:*:late', 'right'],
    ['# *:*:*:*:wrong\r\n\r\nbroken\r\n*:*:*:*:right\r\n', 'right'],
    ['*:*:*:*:with:colons\\:and\\\\more', 'with:colons:and\\more'],
    ['*:*:*:*: spaces ', ' spaces '],
    ['*:*:*:*:', undefined],
    ['*:*:*:\\*:wrong', undefined],
    ['', undefined],
  ])('%j has %j', async (text, password) => {
    const { file, complaints } = await read(fileWith(text))
    expect([file?.find(ann, here), complaints]).toEqual([password, []])
  })

  test('has names with colons, addresses and sockets', async () => {
    const { file } = await read(fileWith('\\:\\:1:5432:a\\:b:c\\\\d:v6\nlocalhost:*:*:*:usual\n/run/own:*:*:*:own\n'))
    expect(file?.find({ user: 'c\\d', database: 'a:b' }, { host: '::1', port: 5432 })).toBe('v6')
    expect(file?.find(ann, { host: '/var/run/postgresql', port: 5432 })).toBe('usual')
    expect(file?.find(ann, { host: '/run/own', port: 5432 })).toBe('own')
  })

  test('is ignored when others can read it, or when it is no file', async () => {
    const path = fileWith('*:*:*:*:right', 0o640)
    const why = `because it is open to others (mode 640). Fix it with: chmod 600 ${path}`
    const complaint = `The password file ${path} is ignored, ${why}`
    expect(await read(path)).toEqual({ file: undefined, complaints: [complaint] })
    const folder = new World().home
    const other = `The password file ${folder} is ignored, because it is not a regular file`
    expect(await read(folder)).toEqual({ file: undefined, complaints: [other] })
  })

  test('need not exist', async () => {
    expect(await read('/nonexistent/file')).toEqual({ file: undefined, complaints: [] })
    expect(await readPasswordFile(ioOf({}), () => Promise.reject(new Error('Nothing is wrong')))).toBeUndefined()
  })

  test.skipIf(process.platform === 'win32')('that is open is warned of once, for all stores', async () => {
    const address = 'postgres://me@127.0.0.1:1/plants'
    const stores = { a: { address }, b: { address: `${address}2` }, c: { address: `${address}3` } }
    const user = new World({ store: 'a', stores })
    const env = { PGPASSFILE: fileWith('*:*:*:*:s3cret', 0o644) }
    for (const command of ['auth status', 'doctor --timeout 50ms'])
      expect((await user.run(command, { env })).err.match(/The password file .* is ignored/g)).toHaveLength(1)
  })
})
