import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { unwritable } from '../../helpers/settings-file.js'
import { asStranger, canBecome, stranger } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

const set = 'config set timeout 8s'
const unsaved = (user: World, warning = '') => ({
  ...{ code: 74, out: '' },
  err: `${warning}${unwritable(user, 'permission denied')}`,
})

describe.runIf(canBecome)('with the stranger (needs root and setpriv),', () => {
  /** Settings of root, which others can get to. */
  function ofRoot(fileMode: number): World {
    const user = new World({ timeout: '7s' })
    for (const path of [user.home, user.config]) chmodSync(path, 0o755)
    chmodSync(user.file, fileMode)
    return user
  }

  /** A user whose home is the stranger's. */
  function ofStranger(): World {
    const user = new World()
    mkdirSync(user.config)
    for (const path of [user.home, user.config]) chownSync(path, stranger, stranger)
    return user
  }

  test('settings of root can be used by all who can read them', async () => {
    const user = ofRoot(0o755)
    const why = `The settings in ${user.file} are open to others (mode 755)`
    const warning = `plants: ${why}. Fix it with: chmod 600 ${user.file}\n`
    expect(await asStranger(user, 'config get timeout')).toEqual({ code: 0, out: '7s\n', err: warning })
    expect(await asStranger(user, set)).toEqual(unsaved(user, warning))
  })

  test('settings of a third user are rejected, whatever SUDO_UID says', async () => {
    const user = ofRoot(0o755)
    chownSync(user.file, 4321, 4321)
    const why = `The settings in ${user.file} belong to another user (uid 4321)`
    const rejected = refusal(why, 'Change its owner, or set PLANTS_CONFIG_DIR')
    expect(await asStranger(user, 'config get timeout', { SUDO_UID: '4321' })).toEqual(rejected)
  })

  test('settings that cannot be read are named', async () => {
    const user = ofRoot(0o600)
    const hint = 'Change its permissions, or set PLANTS_CONFIG_DIR to another directory'
    const rejected = refusal(`The settings in ${user.file} could not be read: permission denied`, hint)
    for (const command of ['config get timeout', set]) expect(await asStranger(user, command)).toEqual(rejected)
  })

  test('settings that root changes for the user of sudo stay that user’s', async () => {
    const user = ofStranger()
    const env = { SUDO_UID: `${stranger}` }
    expect(await user.spawn('config set timeout 1m', { env })).toEqual(answer({ name: 'timeout', value: '1m' }))
    expect((await user.spawn('config set output json', { env })).code).toBe(0)
    expect(readdirSync(user.config).map((name) => [name, statSync(join(user.config, name)).uid])).toEqual([
      ['settings.json', stranger],
    ])
    expect(await asStranger(user, 'config get timeout --output text')).toEqual(printed('1m\n'))
    expect(await asStranger(user, set)).toMatchObject({ code: 0, err: '' })
  })

  test('root changes them with the rights of that user alone', async () => {
    const user = ofStranger()
    const env = { SUDO_UID: `${stranger}` }
    const ofRoots = join(temporaryFolder(), 'root')
    mkdirSync(ofRoots, { mode: 0o755 })
    symlinkSync(ofRoots, `${user.file}.lock`) // what a user would put in the place of what root makes
    expect((await user.spawn(set, { env })).code).toBe(74)
    rmSync(`${user.file}.lock`)
    symlinkSync(join(ofRoots, 'settings.json'), user.file)
    expect(await user.spawn(set, { env })).toMatchObject({ code: 74, out: '' })
    expect(readdirSync(ofRoots)).toEqual([])
  })
})
