import { chmodSync, chownSync, lchownSync, readFileSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { Listener, says } from '../../../helpers/postgres/listener.js'
import { settled } from '../../../helpers/settled.js'
import { addressOf, databaseOptions } from '../../../helpers/shared-store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const isRoot = process.getuid?.() === 0
const nobody = 65_534
const env = { PGPASSWORD: 's3cret' }

interface Place {
  /** of the folder */
  mode: number
  folderOwner?: number
  owner: number
  isLink?: boolean
}

/** Opens a store at a socket of somebody; gives what is said of it, and whether the password was given away. */
async function come({ mode, folderOwner = 0, owner, isLink }: Place) {
  const folder = temporaryFolder()
  const path = join(folder, '.s.PGSQL.5432')
  const listener = await Listener.start([says.clear, says.refused], undefined, path)
  if (isLink) {
    renameSync(path, join(folder, 'other'))
    symlinkSync('other', path)
    lchownSync(path, owner, 0)
  } else chownSync(path, owner, 0)
  chownSync(folder, folderOwner, 0)
  chmodSync(folder, mode)
  const address = addressOf({ url: 'postgres://plants@/plants' }, `host=${folder}`)
  const { login } = databaseOptions({ env })
  const trusted = async () => ({ ...(await login(address)), trusts: (uid: number) => uid === 0 })
  const [told = ''] = await settled([PostgresStore.open(address, databaseOptions({ env }, { login: trusted }))])
  return { told: String(told).replaceAll(folder, 'FOLDER'), isGiven: listener.passwords.length > 0 }
}

const uid = /^postgres:[^:]*:(\d+)/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[1]
const postgres = uid === undefined ? undefined : Number(uid)

describe.runIf(isRoot)('a Unix socket (needs root, who can give files away)', () => {
  test.each([
    ['of this user in a folder like /tmp', { mode: 0o1777, owner: 0 }],
    ['of another user in a folder of this one', { mode: 0o755, owner: 12_345 }],
    ['of another user in a folder of a group', { mode: 0o2775, owner: 12_345 }],
    ...(postgres === undefined ? [] : [['of postgres in a folder like /tmp', { mode: 0o1777, owner: postgres }]]),
  ] as [string, Place][])('%s is used', async (_, place) => {
    const told = expect.stringMatching(/^unauthorized:.* wrong password$/)
    expect(await come(place)).toEqual({ told, isGiven: true })
  })

  const socket = /FOLDER\/\.s\.PGSQL\.5432 belongs to another user \(uid 12345\)$/
  const folder = /FOLDER belongs to another user \(uid 65534\)$/
  const open = /other users can replace what is in FOLDER \(mode 777\)$/
  test.each([
    ['of another user in a folder like /tmp', { mode: 0o1777, owner: 12_345 }, socket],
    ['of this user in an open folder', { mode: 0o777, owner: 0 }, open],
    ['behind a link of another user', { mode: 0o1777, owner: 12_345, isLink: true }, socket],
    ['in a folder of another user below one like /tmp', { mode: 0o755, folderOwner: nobody, owner: nobody }, folder],
    ['of this user in such a folder', { mode: 0o755, folderOwner: nobody, owner: 0 }, folder],
    ['in a private folder of another user', { mode: 0o700, folderOwner: nobody, owner: nobody }, folder],
  ] as [string, Place, RegExp][])('%s is rejected', async (_, place, told) => {
    expect(await come(place)).toEqual({ told: expect.stringMatching(told), isGiven: false })
  })
})
