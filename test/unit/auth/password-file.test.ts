import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readPasswordFile } from '../../../src/auth/password.js'
import { ioOf } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

const ann = { user: 'ann', database: 'garden' }
const here = { host: 'db.example.com', port: 5432 }

async function fileWith(text: string, mode = 0o600, path = join(temporaryFolder(), 'passwords')) {
  writeFileSync(path, text)
  chmodSync(path, mode)
  const complaints: string[] = []
  const file = await readPasswordFile(
    ioOf({ env: { PGPASSFILE: path } }),
    async (message) => void complaints.push(message),
  )
  return { path, file, complaints }
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
    const { file, complaints } = await fileWith(text)
    expect([file?.find(ann, here), complaints]).toEqual([password, []])
  })

  test('has names with colons, addresses and sockets', async () => {
    const { file } = await fileWith('\\:\\:1:5432:a\\:b:c\\\\d:v6\nlocalhost:*:*:*:usual\n/run/own:*:*:*:own\n')
    expect(file?.find({ user: 'c\\d', database: 'a:b' }, { host: '::1', port: 5432 })).toBe('v6')
    expect(file?.find(ann, { host: '/var/run/postgresql', port: 5432 })).toBe('usual')
    expect(file?.find(ann, { host: '/run/own', port: 5432 })).toBe('own')
  })

  test('is left out when others can read it, or when it is no file', async () => {
    const { path, file, complaints } = await fileWith('*:*:*:*:right', 0o640)
    const folder = join(temporaryFolder(), 'folder')
    mkdirSync(folder)
    await readPasswordFile(ioOf({ env: { PGPASSFILE: folder } }), async (message) => void complaints.push(message))
    expect([file, complaints]).toEqual([
      undefined,
      [
        `The password file ${path} is ignored, because it is open to others (mode 640). Fix it with: chmod 600 ${path}`,
        `The password file ${folder} is ignored, because it is not a regular file`,
      ],
    ])
  })

  test('need not be there', async () => {
    const complain = () => Promise.reject(new Error('Nothing is wrong'))
    expect(await readPasswordFile(ioOf({}), complain)).toBeUndefined()
    expect(await readPasswordFile(ioOf({ env: { PGPASSFILE: '/nonexistent/file' } }), complain)).toBeUndefined()
  })
})

test.skipIf(process.platform === 'win32')(
  'a password file that is open to others is warned of once, whatever number of stores might need it',
  async () => {
    const user = new World()
    const path = join(user.home, 'pgpass')
    writeFileSync(path, '*:*:*:*:s3cret')
    chmodSync(path, 0o644)
    const address = 'postgres://me@127.0.0.1:1/plants'
    user.save({ store: 'a', stores: { a: { address }, b: { address: `${address}2` }, c: { address: `${address}3` } } })
    for (const command of ['auth status', 'doctor --timeout 50ms']) {
      const { err } = await user.run(command, { env: { PGPASSFILE: path } })
      expect(err.match(/The password file .* is ignored/g)).toHaveLength(1)
    }
  },
)
