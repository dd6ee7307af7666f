import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeEach, describe, expect, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { canMount, canTrace, isLinux } from '../../helpers/linux.js'
import { bin, plants, start, startUnder } from '../../helpers/process.js'
import { nextPlace, rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, printed, refusal, User } from '../../helpers/user.js'

const team = 'https://plants.example.com/v1'
const token = 's3cret-Token'
const savedAt = '2026-01-02T03:04:05.678Z'
const isRoot = process.getuid?.() === 0
const stranger = 1234
const becomeStranger = ['--reuid', `${stranger}`, '--regid', `${stranger}`, '--clear-groups']
const canBecome = isLinux && isRoot && spawnSync('setpriv', [...becomeStranger, bin, '--version']).status === 0

describe('a settings file that is broken is named, and left as it is:', () => {
  const mend = 'Fix the file, or move it away'
  const newer = 'Update plants, or set PLANTS_CONFIG_DIR to another folder'
  const of = (fields: object) => JSON.stringify({ version: 1, ...fields })

  const broken: [name: string, bytes: string | Uint8Array, why: string, hint?: string][] = [
    ['empty', '', 'are empty', 'Move the file away, or write {"version":1} into it'],
    ['blank', ' \n', 'are not JSON: the text ends at line 2, column 1'],
    ['cut short in a key', '{"version":1,\n "sto', 'are not JSON: the text ends at line 2, column 6'],
    [
      'cut short in a token',
      `{"version":1,"tokens":{"${team}":{"token":"${token}`,
      expect.stringMatching(/^are not JSON: the text ends at line 1, /),
    ],
    ['another format', 'version = 1', 'are not JSON: unexpected "v" at line 1, column 1'],
    ['with a comment', '{"version":1}\n// mine', 'are not JSON: unexpected "/" at line 2, column 1'],
    ['with a comma too much', '{\n  "version": 1,\n}', 'are not JSON: unexpected "}" at line 3, column 1'],
    ['with a token that lacks its quotes', `{"tokens":{"a":${token}}}`, 'are not JSON: unexpected "s" at line 1, column 16'],
    ['twice', '{"version":1}{"version":1}', 'are not JSON: more than one JSON value, the second at line 1, column 14'],
    ['not UTF-8', Buffer.from('{"version":1,"a":"\xe9"}', 'latin1'), 'are not UTF-8'],
    ['UTF-16', Buffer.from('\ufeff{"version":1}', 'utf16le'), 'are not UTF-8'],
    ['null', 'null', 'are not right: the whole must be an object'],
    ['an array', '[{"version":1}]', 'are not right: the whole must be an object'],
    ['a text', '"version 1"', 'are not right: the whole must be an object'],
    ['without a version', '{}', 'are not right: version must be 1'],
    ['of version 0', '{"version":0}', 'are not right: version must be 1'],
    ['of version "1"', '{"version":"1"}', 'are not right: version must be 1'],
    ['of version null', '{"version":null}', 'are not right: version must be 1'],
    ['of version 2', '{"version":2,"stores":[]}', 'were written by a newer plants (version 2)', newer],
    ['of version 1e9', '{"version":1e9}', 'were written by a newer plants (version 1000000000)', newer],
    ['with a store that is null', of({ store: null }), 'are not right: store must be a text'],
    ['with an output that is true', of({ output: true }), 'are not right: output must be a text'],
    ['with a timeout that is 30', of({ timeout: 30 }), 'are not right: timeout must be a text'],
    ['with a ca-cert that is a list', of({ 'ca-cert': ['/ca.pem'] }), 'are not right: ca-cert must be a text'],
    ['with stores that are a list', of({ stores: [] }), 'are not right: stores must be an object'],
    ['with stores that are a text', of({ stores: team }), 'are not right: stores must be an object'],
    ['with a store that is a text', of({ stores: { team } }), 'are not right: stores.team must be an object'],
    ['with a store without an address', of({ stores: { team: {} } }), 'are not right: stores.team.address must be a text'],
    ['with an address that is 1', of({ stores: { team: { address: 1 } } }), 'are not right: stores.team.address must be a text'],
    [
      'with an allow-http that is "yes"',
      of({ stores: { team: { address: team, 'allow-http': 'yes' } } }),
      'are not right: stores.team.allow-http must be true or false',
    ],
    [
      'with a token-command that is a list',
      of({ stores: { team: { address: team, 'token-command': ['pass'] } } }),
      'are not right: stores.team.token-command must be a text',
    ],
    ['with tokens that are null', of({ tokens: null }), 'are not right: tokens must be an object'],
    ['with a token that is a text', of({ tokens: { [team]: token } }), `are not right: tokens.${team} must be an object`],
    ['with a token that is a number', of({ tokens: { a: { token: 1, savedAt } } }), 'are not right: an entry of tokens must be a text'],
    ['with a token of no time', of({ tokens: { a: { token } } }), 'are not right: an entry of tokens must be a text'],
    [
      'with several mistakes',
      of({ store: 1, stores: { a: { address: 1 }, b: [] } }),
      'are not right: store must be a text; stores.a.address must be a text; stores.b must be an object',
    ],
    ['larger than 1 MiB', `{"version":1}${' '.repeat(1_048_576 - 12)}`, 'are larger than 1 MiB'],
  ]
  test.each(broken.map(([name, bytes, why, hint = mend], index) => ({ name, bytes, why, hint, index })))(
    '$name',
    async ({ bytes, why, hint, index }) => {
      const user = new User()
      user.write(bytes)
      const error = { error: 400, message: expect.stringContaining(`The settings in ${user.file} `), hint }
      const commands = [
        'list',
        'create --id 1 --name Fern',
        'config list',
        'config get timeout',
        'config set timeout 1m',
        'config unset timeout',
        'stores list',
        'stores add garden ./garden.db',
        'stores use local',
        'stores remove team',
        'auth status',
        `auth login --with-token --store ${team}`,
        `auth logout --store ${team}`,
      ]
      // Each file with two commands, and each command with several files.
      for (const command of commands.filter((_, at) => at === index % commands.length || at === (index + 6) % commands.length)) {
        const { code, out, err } = await user.run(`${command} --output json`, { stdin: token })
        expect({ command, code, out, ...JSON.parse(err) }).toEqual({ command, code: 2, out: '', ...error })
        expect(JSON.parse(err).message.replace(`The settings in ${user.file} `, '')).toEqual(why)
        expect(err).not.toContain(token)
      }
      if (index % 8 === 0) {
        expect(await user.run('config path')).toEqual(printed(`${user.file}\n`))
        expect((await user.run('--help')).code).toBe(0)
        const doctor = await user.run('doctor')
        expect(doctor).toMatchObject({ code: 1, out: expect.stringContaining('{"check":"settings","state":"failed"') })
      }
      expect(readFileSync(user.file).equals(Buffer.from(bytes))).toBe(true)
      expect(readdirSync(user.home)).toEqual(['config'])
      expect(readdirSync(user.folder)).toEqual(['settings.json'])
    },
  )

  test('a folder', async () => {
    const user = new User()
    mkdirSync(user.file, { recursive: true })
    for (const command of ['config list', 'config set timeout 1m', 'list']) {
      expect(await user.run(command)).toEqual(refusal(`The settings in ${user.file} are a folder`, 'Move it away'))
    }
    expect(readdirSync(user.file)).toEqual([])
  })

  test.runIf(isLinux)('a pipe, which holds nobody up', { timeout: 10_000 }, async () => {
    const user = new User()
    mkdirSync(user.folder)
    execFileSync('mkfifo', [user.file])
    for (const command of ['config list', 'config set timeout 1m', 'list']) {
      expect(await user.run(command)).toEqual(refusal(`The settings in ${user.file} are no file`, 'Move it away'))
    }
    expect(lstatSync(user.file).isFIFO()).toBe(true)
  })

  test('a link to itself', async () => {
    const user = new User()
    mkdirSync(user.folder)
    symlinkSync('settings.json', user.file)
    const { code, err } = await user.run('config set timeout 1m')
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`The settings in ${user.file} could not be read`) })
    expect(err).not.toContain('Change its permissions')
    expect(readlinkSync(user.file)).toBe('settings.json')
  })
})

test('a settings file may begin with a byte order mark, and be 1 MiB large', async () => {
  const user = new User()
  const text = '\ufeff{"version":1,"timeout":"5s"}'
  user.write(text.padEnd(1_048_576 - 2))
  expect(await user.run('config get timeout')).toEqual(printed('5s\n'))
  expect(await user.run('config set timeout 6s')).toEqual(answer({ name: 'timeout', value: '6s' }))
  expect(user.saved).toEqual({ version: 1, timeout: '6s' })
})

test('a change that would make the file larger than what can be read again is refused, and leaves it', async () => {
  const user = new User()
  user.write({ notes: 'x'.repeat(1_048_500) })
  const before = readFileSync(user.file)
  const { code } = await user.run(['stores', 'add', 'team', team])
  expect({ code, isReadable: (await user.run('config list')).code === 0 }).toEqual({ code: expect.not.closeTo(0), isReadable: true })
  expect(readFileSync(user.file).equals(before)).toBe(true)
})

test('a settings file with lists in one another, 200,000 deep, is read, and refused where it would be written', async () => {
  const user = new User()
  const text = `{"version":1,"timeout":"7s","notes":${'['.repeat(200_000)}${']'.repeat(200_000)}}`
  user.write(text)
  expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
  const why = 'The settings hold lists or objects in one another, too deep to be written again'
  const login = `auth login --with-token --timeout 10ms --store http://127.0.0.1:9`
  for (const command of ['config set timeout 3s', 'stores add team ./team.db', login]) {
    const { code, out, err } = await user.run(command, { stdin: token })
    const last = err.trimEnd().split('\n').slice(-2)
    expect({ command, code, out, last }).toEqual({
      ...{ command, code: 2, out: '' },
      last: [`plants: ${why}`, '  Fix the settings file, or move it away'],
    })
  }
  expect(readFileSync(user.file, 'utf8') === text).toBe(true)
  expect(readdirSync(user.folder).filter((name) => !name.includes('lock'))).toEqual(['settings.json'])
})

describe('a saved value that its setting cannot have', () => {
  test.each<[string, object, string, string]>([
    ['timeout', { timeout: 'soon' }, 'timeout', 'must be a duration such as 30s, 500ms or 2m, but was "soon"'],
    ['output', { output: 'xml' }, 'output', 'must be text or json, but was "xml"'],
    [
      'stores.team.timeout',
      { store: 'team', stores: { team: { address: '/team.db', timeout: '' } } },
      'stores.team.timeout',
      'must be a duration such as 30s, 500ms or 2m, but was ""',
    ],
  ])('is named where it counts, and can be mended with config: %s', async (name, settings, key, why) => {
    const user = new User()
    user.write({ ...settings })
    expect(await user.run('list')).toMatchObject({ code: 2, err: expect.stringContaining(`plants: ${key} in ${user.file} ${why}\n`) })
    expect(await user.run(['config', 'unset', name, '--output', 'json'])).toEqual(answer({ name, removed: true }))
    expect((await user.run('list')).code).toBe(0)
  })

  test.each([['nowhere'], [''], ['ftp://x']])('as the address of a store, hinders nobody else, and can be mended: %j', async (address) => {
    const user = new User()
    user.write({ stores: { team: { address } } })
    expect((await user.run('list')).code).toBe(0)
    expect((await user.run('stores list')).code).toBe(0)
    expect(await user.run('list --store team')).toMatchObject({
      code: 2,
      err: expect.stringContaining(`plants: stores.team.address in ${user.file} `),
    })
    expect((await user.run('config set stores.team.address ./team.db')).code).toBe(0)
    expect((await user.run('list --store team')).code).toBe(0)
  })
})

describe.skipIf(process.platform === 'win32')('a settings file', () => {
  test.each([
    ['644', '700'],
    ['660', '700'],
    ['601', '700'],
    ['777', '755'],
  ])('of mode %s is complained of, and used', async (mode, folderMode) => {
    const user = new User()
    user.write({ timeout: '7s' })
    chmodSync(user.file, mode)
    chmodSync(user.folder, folderMode)
    const complaint = `The settings in ${user.file} are open to others (mode ${mode}). Fix it with: chmod 600 ${user.file}`
    expect(await user.run('config get timeout')).toEqual({ code: 0, out: '7s\n', err: `plants: ${complaint}\n` })
    expect(await user.run('config get timeout --output json')).toMatchObject({ err: `${JSON.stringify({ warning: complaint })}\n` })
    expect((await user.run('create --id 1 --name Fern')).err).toBe(`plants: ${complaint}\n`)
    expect(modeOf(user.file)).toBe(mode)
    expect((await user.run('config set timeout 8s')).err).toBe(`plants: ${complaint}\n`)
    expect(modeOf(user.file)).toBe('600')
    expect(await user.run('config get timeout')).toEqual(printed('8s\n'))
  })

  test.each([['600'], ['400'], ['700']])('of mode %s is not complained of', async (mode) => {
    const user = new User()
    user.write({ timeout: '7s' })
    chmodSync(user.file, mode)
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
  })

  test.each([['777'], ['770'], ['722']])('in a folder of mode %s, where others can replace it, is complained of', async (mode) => {
    const user = new User()
    user.write({ timeout: '7s' })
    chmodSync(user.folder, mode)
    const complaint = `Others can replace the settings in ${user.folder} (mode ${mode}). Fix it with: chmod 700 ${user.folder}`
    expect(await user.run('config get timeout')).toEqual({ code: 0, out: '7s\n', err: `plants: ${complaint}\n` })
  })

  test.each([['1777'], ['755']])('in a folder of mode %s, where others cannot replace it, is not complained of', async (mode) => {
    const user = new User()
    user.write({ timeout: '7s' })
    chmodSync(user.folder, mode)
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
  })

  test.runIf(isRoot)('of another user is refused, and not touched (needs root)', async () => {
    const user = new User()
    user.write({ timeout: '7s' })
    chownSync(user.file, stranger, stranger)
    const refused = refusal(
      `The settings in ${user.file} belong to another user (uid ${stranger})`,
      'Change its owner, or set PLANTS_CONFIG_DIR',
    )
    for (const command of ['config get timeout', 'config set timeout 8s', 'list']) expect(await user.run(command)).toEqual(refused)
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
    expect(readdirSync(user.folder)).toEqual(['settings.json'])
  })

  test.runIf(canBecome)('of root is good for everybody who can read it (needs root and setpriv)', async () => {
    const user = new User()
    user.write({ timeout: '7s' })
    for (const path of [user.home, user.folder, user.file]) chmodSync(path, 0o755)
    const complaint = `The settings in ${user.file} are open to others (mode 755). Fix it with: chmod 600 ${user.file}`
    expect(await asStranger(user, 'config get timeout')).toEqual({ code: 0, out: '7s\n', err: `plants: ${complaint}\n` })
    expect(await asStranger(user, 'config set timeout 8s')).toEqual({
      code: 74,
      out: '',
      err: `plants: ${complaint}\n${unwritable(user, 'permission denied')}`,
    })
  })

  test.runIf(canBecome)('of another user is refused whatever SUDO_UID says, by whoever is not root (needs root and setpriv)', async () => {
    const user = new User()
    user.write({ timeout: '7s' })
    for (const path of [user.home, user.folder, user.file]) chmodSync(path, 0o755)
    chownSync(user.file, 4321, 4321)
    const why = `The settings in ${user.file} belong to another user (uid 4321)`
    const { code, err } = await asStranger(user, 'config get timeout', { SUDO_UID: '4321' })
    expect({ code, err }).toEqual({ code: 2, err: `plants: ${why}\n  Change its owner, or set PLANTS_CONFIG_DIR\n` })
  })

  test.runIf(canBecome)('that is not to be read is named (needs root and setpriv)', async () => {
    const user = new User()
    user.write({ timeout: '7s' })
    for (const path of [user.home, user.folder]) chmodSync(path, 0o755)
    const refused = refusal(`The settings in ${user.file} could not be read: permission denied`, 'Change its permissions')
    expect(await asStranger(user, 'config get timeout')).toEqual(refused)
    expect(await asStranger(user, 'config set timeout 8s')).toEqual(refused)
  })

  test.runIf(canBecome)('that root changes for the user of sudo, stays that user’s (needs root and setpriv)', async () => {
    const user = new User()
    for (const path of [user.home, user.folder]) {
      mkdirSync(path, { recursive: true })
      chownSync(path, stranger, stranger)
    }
    const env = { ...user.env, SUDO_UID: `${stranger}` }
    expect(await plants(['config', 'set', 'timeout', '1m'], user.home, { env })).toEqual(answer({ name: 'timeout', value: '1m' }))
    expect(await plants(['config', 'set', 'output', 'json'], user.home, { env })).toEqual(answer({ name: 'output', value: 'json' }))
    expect(readdirSync(user.folder).map((name) => [name, statSync(join(user.folder, name)).uid])).toEqual([
      ['settings.json', stranger],
      ['settings.json.lock', stranger],
    ])
    expect(await asStranger(user, 'config get timeout --output text')).toEqual(printed('1m\n'))
    expect(await asStranger(user, 'config set timeout 2m')).toMatchObject({ code: 0, err: '' })
  })
})

test.runIf(isRoot)('root gives no file away that a user’s link leads to (needs root)', async () => {
  const user = new User()
  const victim = join(user.home, 'victim')
  mkdirSync(user.folder)
  chownSync(user.folder, stranger, stranger)
  writeFileSync(victim, '')
  for (const name of ['settings.json.lock', 'settings.json']) {
    symlinkSync('../victim', join(user.folder, name))
    await user.run('config set timeout 1m')
    expect({ name, uid: statSync(victim).uid }).toEqual({ name, uid: 0 })
    rmSync(join(user.folder, name), { force: true })
  }
})

test.runIf(canTrace)('a change is on the disk, with the name of the file, before it is reported (needs strace)', async () => {
  const user = new User()
  mkdirSync(user.folder)
  const log = join(user.home, 'trace')
  const strace = ['-f', '-y', '-o', log, '-e', 'trace=rename,renameat,renameat2,fsync,fdatasync,write']
  const { exitCode } = await startUnder('strace', strace, ['config', 'set', 'timeout', '1m'], user.home, { env: user.env })
  const calls = readFileSync(log, 'utf8').replaceAll(/^\d+ +/gm, '')
  const at = (pattern: RegExp) => calls.search(pattern)
  const renamed = at(/^rename.*"[^"]*\/settings\.json"(, 0)?\) = 0/m)
  const synced = at(new RegExp(`^fsync\\(\\d+<${user.folder}>\\)`, 'm'))
  expect({ exitCode, isInOrder: 0 < renamed && renamed < synced && synced < at(/^write\(1<.*timeout/m) }).toEqual({
    exitCode: 0,
    isInOrder: true,
  })
})

describe('where nothing may be written', () => {
  test('a file of mode 0400 is read and not changed', async () => {
    const user = new User()
    user.write({ timeout: '7s', stores: { team: { address: team } } })
    chmodSync(user.file, 0o400)
    const before = readFileSync(user.file)
    const message = `The settings in ${user.file} could not be changed: the file is read-only`
    const refused = refusal(message, `Make the file writable: chmod u+w ${user.file}`, 74)
    for (const command of ['config set timeout 8s', 'config unset timeout', `stores add garden ./garden.db`, 'stores use team']) {
      expect(await user.run(command)).toEqual(refused)
    }
    expect(await user.run('stores remove team --output json')).toMatchObject({
      code: 74,
      err: `${JSON.stringify({ error: 500, message, hint: `Make the file writable: chmod u+w ${user.file}` })}\n`,
    })
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
    expect(readFileSync(user.file)).toEqual(before)
    expect(modeOf(user.file)).toBe('400')
  })

  test.runIf(canMount).each([
    ['where settings were changed before', true],
    ['where they were not', false],
  ])('a read-only disk is read from, %s (needs unshare)', async (_, isChanged) => {
    const user = new User()
    user.write({ timeout: '7s' })
    if (isChanged) await user.run('config set timeout 7s')
    const before = readdirSync(user.folder)
    expect(await onReadOnlyDisk(user, 'config get timeout')).toEqual(printed('7s\n'))
    expect((await onReadOnlyDisk(user, 'create --id 1 --name Fern --store ./garden.db')).code).toBe(0)
    const refused = { code: 74, out: '', err: unwritable(user, 'the disk is read-only') }
    for (const command of ['config set timeout 8s', 'stores add garden ./garden.db']) {
      expect(await onReadOnlyDisk(user, command)).toEqual(refused)
    }
    expect([user.saved, readdirSync(user.folder)]).toEqual([{ version: 1, timeout: '7s' }, before])
  })

  test.runIf(canBecome).each([
    ['where settings were changed before', true],
    ['where they were not', false],
  ])('a folder of mode 0500 is read from, %s (needs root and setpriv)', async (_, isChanged) => {
    const user = new User()
    chownSync(user.home, stranger, stranger)
    expect((await asStranger(user, 'config set timeout 7s')).code).toBe(0)
    if (!isChanged) rmSync(join(user.folder, 'settings.json.lock'))
    const before = readdirSync(user.folder)
    chmodSync(user.folder, 0o500)
    expect(await asStranger(user, 'config get timeout')).toEqual(printed('7s\n'))
    expect(await asStranger(user, 'config set timeout 8s')).toEqual({ code: 74, out: '', err: unwritable(user, 'permission denied') })
    expect([user.saved, readdirSync(user.folder)]).toEqual([{ version: 1, timeout: '7s' }, before])
  })

  test.runIf(canMount)('a full disk leaves the file as it is (needs unshare)', async () => {
    const user = new User()
    mkdirSync(user.folder)
    const script = `
      mount -t tmpfs -o size=64k,mode=700 tmpfs "$PLANTS_CONFIG_DIR" && cd "$PLANTS_CONFIG_DIR" || exit 99
      "$0" config set timeout 7s > /dev/null || exit 98
      cp settings.json "$HOME/before"
      cat /dev/zero > filler 2> /dev/null
      "$0" config set timeout 8s; echo "$?"
      "$0" config get timeout --output text; cmp settings.json "$HOME/before"; ls
      rm filler; "$0" config set timeout 9s; ls`
    const { code, out, err } = await result(startUnder('unshare', ['-rm', 'sh', '-c', script], [], user.home, { env: user.env }))
    expect({ code, out, err }).toEqual({
      code: 0,
      out: '74\n7s\nfiller\nsettings.json\nsettings.json.lock\n{"name":"timeout","value":"9s"}\nsettings.json\nsettings.json.lock\n',
      err: unwritable(user, 'no space left on the disk'),
    })
  })

  test('a folder that cannot be made is named', async () => {
    const user = new User()
    writeFileSync(user.folder, 'mine')
    expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
    const refused = { code: 74, out: '', err: unwritable(user, 'what should be their folder is none') }
    expect(await user.run('config set timeout 8s')).toEqual(refused)
    expect(readFileSync(user.folder, 'utf8')).toBe('mine')
  })

  test.each([
    ['a folder', (path: string) => mkdirSync(path)],
    ['a text', (path: string) => writeFileSync(path, 'garbage '.repeat(200))],
    ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
  ])('because %s is in the place of the lock, names the lock', { timeout: 10_000 }, async (_, make) => {
    const user = new User()
    user.write({ timeout: '7s' })
    make(join(user.folder, 'settings.json.lock'))
    const { code, err } = await user.run('config set timeout 8s')
    expect({ code, err }).toEqual({ code: 74, err: expect.stringContaining('settings.json.lock') })
    expect(err).not.toContain('ERR_')
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
  })
})

describe('where the file is not to be replaced', () => {
  test.runIf(canMount)('because it is mounted by itself, it is read and not changed (needs unshare)', async () => {
    const user = new User()
    user.write({ timeout: '7s' })
    const script = 'mount --bind "$PLANTS_CONFIG_DIR/settings.json" "$PLANTS_CONFIG_DIR/settings.json" && exec "$0" "$@"'
    const under = (command: string) => startUnder('unshare', ['-rm', 'sh', '-c', script], command.split(' '), user.home, { env: user.env })
    expect(await result(under('config get timeout'))).toEqual(printed('7s\n'))
    expect(await result(under('config set timeout 8s'))).toEqual({
      code: 74,
      out: '',
      err: unwritable(user, 'the file is mounted by itself'),
    })
    expect(readdirSync(user.folder)).toEqual(['settings.json', 'settings.json.lock'])
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
  })

  test.runIf(canBecome)('because the lock is another user’s, the lock is named (needs root and setpriv)', async () => {
    const user = new User()
    chownSync(user.home, stranger, stranger)
    expect((await asStranger(user, 'config set timeout 7s')).code).toBe(0)
    chownSync(`${user.file}.lock`, 0, 0)
    const { code, err } = await asStranger(user, 'config set timeout 8s')
    expect({ code, err }).toEqual({ code: 74, err: expect.stringContaining(`${user.file}.lock`) })
    expect(await asStranger(user, 'config get timeout')).toEqual(printed('7s\n'))
  })

  const calls = ['?mkdir,mkdirat', 'openat', 'pwrite64', 'fsync', '?chmod,fchmod,fchmodat', '?rename,renameat,renameat2', '?rmdir,unlinkat']
  test.runIf(canTrace).each(calls.flatMap((call) => [[call, 'EIO'] as const, [call, 'ENOSPC'] as const]))(
    'because %s fails with %s, it is old or new, as the exit code says (needs strace)',
    async (call, error) => {
      for (let when = 1, isOver = false; !isOver; when = nextPlace(when)) {
        const user = new User()
        user.write({ timeout: '7s' })
        const log = join(user.home, 'log')
        const own = ['', '/settings.json', '/settings.json.lock'].flatMap((name) => ['-P', user.folder + name])
        const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${error}:when=${when}`, ...(call === 'openat' ? own : [])]
        const started = startUnder('strace', ['-D', '-o', log, ...inject], ['config', 'set', 'timeout', '8s'], user.home, { env: user.env })
        const { code, err } = await result(started)
        isOver = !readFileSync(log, 'utf8').includes('INJECTED')
        const next = await plants(['config', 'set', 'output', 'json'], user.home, { env: user.env })
        expect({ when, code, err, saved: user.saved, next }).toEqual({
          ...{ when, err: code === 0 ? '' : expect.stringMatching(/^plants: .*settings/) },
          code: isOver ? 0 : expect.toBeOneOf([0, 2, 74]),
          saved: { version: 1, timeout: code === 0 ? '8s' : '7s', output: 'json' },
          next: answer({ name: 'output', value: 'json' }),
        })
        expect(readdirSync(user.folder)).toEqual(['settings.json', 'settings.json.lock'])
      }
    },
  )
})

describe('without a place for settings', () => {
  const message = /^plants: There is no absolute path for the settings, only .*\n {2}Set HOME and XDG_CONFIG_HOME to absolute paths, or /

  test('whatever needs none works', async () => {
    const folder = temporaryFolder()
    const env = { HOME: '' }
    const fern = ['--store', join(folder, 'garden.db'), '--output', 'json']
    const results = []
    for (const args of [
      ['create', '--id', '1', '--name', 'Fern'],
      ['list'],
      ['config', 'list'],
      ['stores', 'list'],
      ['config', 'get', 'timeout'],
    ]) {
      const { code, err } = await plants([...args, ...fern], folder, { env })
      results.push({ args, code, err })
    }
    expect(results).toEqual(results.map(({ args }) => ({ args, code: 0, err: '' })))
  })

  test('nothing can be saved, and the message says how', async () => {
    const folder = temporaryFolder()
    const { code, out, err } = await plants(['config', 'set', 'timeout', '1m'], folder, { env: { HOME: '' }, cwd: folder })
    expect({ code, out, err }).toEqual({ code: 2, out: '', err: expect.stringMatching(message) })
    expect(readdirSync(folder)).toEqual([])
  })

  test.runIf(canBecome)('a user without an account and a HOME can use a store (needs root and setpriv)', async () => {
    const user = new User()
    chownSync(user.home, stranger, stranger)
    const args = ['create', '--id', '1', '--name', 'Fern', '--store', join(user.home, 'garden.db')]
    const env = ['-u', 'HOME', '-u', 'PLANTS_CONFIG_DIR', '-u', 'PLANTS_DATA_DIR']
    const started = startUnder('setpriv', [...becomeStranger, 'env', ...env], args, user.home, { cwd: user.home })
    expect(await result(started)).toEqual(printed('{"name":"Fern"}\n'))
  })

  describe.runIf(canBecome)('a user without an account and a HOME (needs root and setpriv)', () => {
    const homeless = ['-u', 'HOME', '-u', 'XDG_CONFIG_HOME', '-u', 'XDG_DATA_HOME', '-u', 'PLANTS_DATA_DIR']
    const changes: [string, string?][] = [
      ['config set timeout 1m'],
      ['stores add team https://plants.example.com'],
      ['stores use team'],
      ['auth login --with-token --timeout 10ms --store http://127.0.0.1:9', token],
      ['auth logout --store http://127.0.0.1:9'],
      ['config unset timeout'],
      ['stores remove team'],
    ]

    function asHomeless(user: User, variables: string[], command: string, input = '') {
      const tracer = [...becomeStranger, 'env', ...homeless, ...variables]
      return result(startUnder('setpriv', tracer, command.split(' '), user.home, { cwd: user.home, input }))
    }

    test('saves in PLANTS_CONFIG_DIR, and PLANTS_DATA_DIR is not needed for that', async () => {
      const user = new User()
      chownSync(user.home, stranger, stranger)
      const variables = [`PLANTS_CONFIG_DIR=${user.folder}`]
      for (const [command, input] of changes) {
        expect({ command, ...(await asHomeless(user, variables, command, input)) }).toMatchObject({ command, code: 0 })
        if (command.startsWith('auth login')) expect(readFileSync(user.file, 'utf8')).toContain(token)
      }
      expect(user.saved).toEqual({ version: 1, stores: {}, tokens: {} })
      expect(statSync(user.file).uid).toBe(stranger)
    })

    test('is told what to set where there is no place', async () => {
      const user = new User()
      chownSync(user.home, stranger, stranger)
      const needing = changes.filter(([command]) => /set timeout|add|login/.test(command))
      for (const [command, input] of needing.filter(([name]) => !name.includes('unset'))) {
        expect({ command, ...(await asHomeless(user, ['-u', 'PLANTS_CONFIG_DIR'], command, input)) }).toEqual({
          ...{ command, code: 2, out: '' },
          err: expect.stringMatching(/^plants: .*\n {2}Set HOME.*PLANTS_CONFIG_DIR.*\n$/),
        })
      }
      expect(readdirSync(user.home)).toEqual([])
    })
  })
})

describe('keys that this version does not know stay', () => {
  const own = { constructor: [null], 'a.b': { 'c.d': {} }, toString: '', later: { deep: [{ x: null }, 'é', 1.5, true] } }
  const before = {
    version: 1,
    output: 'json',
    store: 'garden',
    ...own,
    stores: { team: { address: team, timeout: '1m', ...own }, garden: { address: '/srv/garden.db', ...own } },
    tokens: { [team]: { token, savedAt, ...own }, 'https://other.example.com': { token, savedAt, ...own } },
  }

  test.each<[string, (saved: typeof before) => void]>([
    ['config set timeout 3m', (saved) => Object.assign(saved, { timeout: '3m' })],
    ['config set output text', (saved) => Object.assign(saved, { output: 'text' })],
    ['config unset output', (saved) => Reflect.deleteProperty(saved, 'output')],
    ['config set stores.team.timeout 3m', ({ stores }) => Object.assign(stores.team, { timeout: '3m' })],
    ['config unset stores.team.timeout', ({ stores }) => Reflect.deleteProperty(stores.team, 'timeout')],
    ['config set stores.garden.address /srv/other.db', ({ stores }) => Object.assign(stores.garden, { address: '/srv/other.db' })],
    ['stores add new /srv/new.db', ({ stores }) => Object.assign(stores, { new: { address: '/srv/new.db' } })],
    ['stores use team', (saved) => Object.assign(saved, { store: 'team' })],
    ['stores use local', (saved) => Reflect.deleteProperty(saved, 'store')],
    ['stores remove garden', (saved) => [Reflect.deleteProperty(saved.stores, 'garden'), Reflect.deleteProperty(saved, 'store')]],
    ['stores remove team', (saved) => [Reflect.deleteProperty(saved.stores, 'team'), Reflect.deleteProperty(saved.tokens, team)]],
    [`auth logout --store ${team}`, ({ tokens }) => Reflect.deleteProperty(tokens, team)],
  ])('with %s', async (command, change) => {
    const user = new User()
    user.write(before)
    expect((await user.run(command)).code).toBe(0)
    const after = structuredClone(before)
    change(after)
    expect(entriesOf(user.saved)).toEqual(entriesOf(after))
  })

  test('with auth login', async () => {
    const user = new User()
    const remote = await Hostile.listen({ posts: [json(422, { error: 422, message: 'id is missing' })] })
    user.write(before)
    expect((await user.run(`auth login --with-token --store ${remote.url}`, { stdin: token })).code).toBe(0)
    const tokens = { ...before.tokens, [remote.url]: { token, savedAt: expect.any(String) } }
    expect(user.saved).toMatchObject({ ...before, tokens })
  })

  test.each([
    ['at the top', '"__proto__":{"a":1}'],
    ['as the name of a store', '"stores":{"__proto__":{"address":"/a.db"}}'],
    ['in a store', '"stores":{"team":{"address":"/a.db","__proto__":{"a":1}}}'],
    ['as an address', '"tokens":{"__proto__":{"token":"a","savedAt":"b"}}'],
    ['with a token', '"tokens":{"https://a":{"token":"a","savedAt":"b","__proto__":{"a":1}}}'],
  ])('also one called __proto__, %s', async (_, text) => {
    const user = new User()
    user.write(`{"version":1,${text}}`)
    expect((await user.run('config set timeout 3m')).code).toBe(0)
    expect(readFileSync(user.file, 'utf8').replaceAll(/\s/g, '')).toContain(text)
  })
})

describe('a settings file that is a link', () => {
  const shapes: [string, string][] = [
    ['relative', '../dotfiles/plants.json'],
    ['absolute', '/HOME/dotfiles/plants.json'],
    ['a link to a link', 'step'],
  ]

  test.each(shapes)('%s, stays one, and what it leads to is changed', async (_, link) => {
    const { user, target } = linked(link)
    writeFileSync(target, '{"version":1,"output":"json"}', { mode: 0o600 })
    expect(await user.run('config set timeout 1m')).toEqual(answer({ name: 'timeout', value: '1m' }))
    expect(user.saved).toEqual({ version: 1, output: 'json', timeout: '1m' })
    expect(placesOf(user, target)).toEqual(linkedPlaces)
  })

  test.each(shapes)('%s, and leads nowhere, stays one, and the file is made there', async (_, link) => {
    const { user, target } = linked(link)
    expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
    expect(await user.run('config set timeout 1m')).toEqual(answer({ name: 'timeout', value: '1m' }))
    expect(user.saved).toEqual({ version: 1, timeout: '1m' })
    expect(placesOf(user, target)).toEqual(linkedPlaces)
  })

  const linkedPlaces = { areLinks: [true, true], isFile: true, mode: '600', left: [] }

  function linked(link: string): { user: User; target: string } {
    const user = new User()
    for (const folder of [user.folder, join(user.home, 'dotfiles')]) mkdirSync(folder, { mode: 0o700 })
    symlinkSync(link.replace('/HOME', user.home), user.file)
    symlinkSync('../dotfiles/plants.json', join(user.folder, 'step'))
    return { user, target: join(user.home, 'dotfiles/plants.json') }
  }

  function placesOf(user: User, target: string) {
    const names = [...readdirSync(user.folder), ...readdirSync(join(user.home, 'dotfiles'))]
    return {
      areLinks: [user.file, join(user.folder, 'step')].map((path) => lstatSync(path).isSymbolicLink()),
      isFile: lstatSync(target).isFile(),
      mode: modeOf(target),
      left: names.filter((name) => !['settings.json', 'step', 'plants.json'].includes(name) && !name.endsWith('.lock')),
    }
  }

  test('in a folder that is a link, dangling, leads where the system says', async () => {
    const user = new User()
    mkdirSync(join(user.home, 'dotfiles/sub'), { recursive: true })
    symlinkSync('dotfiles/sub', user.folder)
    symlinkSync('../plants.json', user.file)
    expect((await user.run('config set timeout 1m')).code).toBe(0)
    expect(await user.run('config get timeout')).toEqual(printed('1m\n'))
    expect(realpathSync(user.file)).toBe(join(user.home, 'dotfiles/plants.json'))
    expect(readdirSync(user.home)).not.toContain('plants.json')
  })

  test('to nothing is like no file; where nothing can be made, nothing is saved', async () => {
    const user = new User()
    mkdirSync(user.folder)
    symlinkSync('../gone/plants.json', user.file)
    expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
    const { code, err } = await user.run('config set timeout 1m')
    expect({ code, err }).toEqual({ code: 74, err: expect.stringMatching(/could not be changed: .*(folder|directory)/) })
    expect(readlinkSync(user.file)).toBe('../gone/plants.json')
  })

  test('is changed by all who link to it, one after the other', { timeout: 30_000 }, async () => {
    const home = temporaryFolder()
    writeFileSync(join(home, 'shared.json'), '{"version":1}', { mode: 0o600 })
    const folders = ['a', 'b'].map((name) => join(home, name))
    for (const folder of folders) {
      mkdirSync(folder, { mode: 0o700 })
      symlinkSync('../shared.json', join(folder, 'settings.json'))
    }
    const names = Array.from({ length: 30 }, (_, index) => `s${index}`)
    const results = await Promise.all(
      names.map((name, index) =>
        plants(['stores', 'add', name, `/${name}.db`], home, { env: { PLANTS_CONFIG_DIR: folders[index % 2] ?? '' } }),
      ),
    )
    expect(results.filter(({ code }) => code !== 0)).toEqual([])
    expect(Object.keys(JSON.parse(readFileSync(join(home, 'shared.json'), 'utf8')).stores).toSorted()).toEqual(names.toSorted())
  })
})

describe.skipIf(process.platform === 'win32')('what is made', () => {
  test.each([['000'], ['022'], ['077'], ['0177']])('is for its owner alone, under umask %s', async (umask) => {
    const home = temporaryFolder()
    const env = { PLANTS_CONFIG_DIR: join(home, 'a/b/plants') }
    const under = ['-c', `umask ${umask}; exec "$0" "$@"`]
    expect(await result(startUnder('sh', under, ['config', 'set', 'timeout', '1m'], home, { env }))).toMatchObject({ code: 0, err: '' })
    const paths = ['a', 'a/b', 'a/b/plants', 'a/b/plants/settings.json', 'a/b/plants/settings.json.lock']
    expect(paths.map((path) => modeOf(join(home, path)))).toEqual(['700', '700', '700', '600', '600'])
  })

  test.runIf(canTrace)('has its mode at birth, and is made exclusively (needs strace)', async () => {
    const user = new User()
    const log = join(user.home, 'log')
    const tracer = ['-f', '-o', log, '-e', 'trace=openat,mkdir,?mkdirat,creat']
    const sh = ['-c', 'umask 000; exec "$0" "$@"', 'strace', ...tracer]
    const { code } = await result(startUnder('sh', sh, ['config', 'set', 'timeout', '1m'], user.home, { env: user.env }))
    const made = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.includes(user.folder) && /O_CREAT|mkdir/.test(line) && !line.includes('EEXIST'))
      .map((line) =>
        line
          .replace(/.*"(.*?)", (?:\S+, )?(\d+)\).*/, '$1 $2')
          .replace(`${user.folder}/`, '')
          .replace(/\.\w{6}\/|tmp-\w+/g, '*'),
      )
    expect(code).toBe(0)
    expect(made.filter((line) => !/ 0[67]00$/.test(line) && !line.startsWith('settings.json.lock '))).toEqual([])
    expect(made[0]).toBe(`${user.folder} 0700`)
    expect(made).toContain('settings.json.lock 0600')
  })
})

describe('what a killed process has left', () => {
  let user: User
  const left = ['.settings.json.plants-a1B2c3', '.settings.json.plants-ZZZZZZ']
  beforeEach(() => {
    user = new User()
    user.write({ timeout: '7s' })
    for (const name of left) mkdirSync(join(user.folder, name), { mode: 0o700 })
    writeFileSync(join(user.folder, '.settings.json.plants-a1B2c3/settings.json.tmp-51838694635207d8'), '{"vers')
    writeFileSync(join(user.folder, '.settings.json.plants-ZZZZZZ/settings.json'), '{"version":1,"timeout":"9s"}')
  })

  test('is not taken for settings, and is gone after the next change', async () => {
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
    expect((await user.run('config set output json')).code).toBe(0)
    expect(user.saved).toEqual({ version: 1, timeout: '7s', output: 'json' })
    expect(readdirSync(user.folder)).toEqual(['settings.json', 'settings.json.lock'])
  })

  test('is gone beside the target of a link, too', async () => {
    const folder = join(user.home, 'link')
    mkdirSync(folder, { mode: 0o700 })
    symlinkSync('../config/settings.json', join(folder, 'settings.json'))
    expect((await user.run('config set output json', { env: { PLANTS_CONFIG_DIR: folder } })).code).toBe(0)
    expect(readdirSync(user.folder).filter((name) => left.includes(name))).toEqual([])
  })

  test('is all that is removed: files of the user stay', async () => {
    const names = [
      'settings.json.backup',
      'settings.json.before',
      'settings.json.old',
      'settings.json~',
      'settings.json.260102',
      'a.backup',
    ]
    for (const name of names) writeFileSync(join(user.folder, name), `my ${name}`)
    mkdirSync(join(user.folder, 'settings.json.folder'))
    writeFileSync(join(user.folder, 'settings.json.folder/notes.txt'), 'mine')
    expect((await user.run('config set output json')).code).toBe(0)
    expect(readdirSync(user.folder).filter((name) => !left.includes(name))).toEqual(
      [...names, 'settings.json', 'settings.json.folder', 'settings.json.lock'].toSorted(),
    )
  })
})

describe('processes that change settings at once', () => {
  test('lose nothing: many of them', { timeout: 60_000 }, async () => {
    const user = new User()
    const numbers = Array.from({ length: Math.min(rounds(20), 50) }, (_, index) => index)
    user.write({ later: 1, stores: Object.fromEntries(numbers.map((n) => [`old${n}`, { address: `/old${n}.db`, later: n }])) })
    const commands = numbers.flatMap((n) => [`stores add new${n} /new${n}.db`, `config set stores.old${n}.timeout ${n + 1}s`])
    const results = await Promise.all(commands.map((command) => plants(command.split(' '), user.home, { env: user.env })))
    expect(results.filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
    const olds = numbers.map((n) => [`old${n}`, { address: `/old${n}.db`, timeout: `${n + 1}s`, later: n }])
    const news = numbers.map((n) => [`new${n}`, { address: `/new${n}.db` }])
    expect(user.saved).toEqual({ version: 1, later: 1, stores: Object.fromEntries([...olds, ...news]) })
    expect(readdirSync(user.folder)).toEqual(['settings.json', 'settings.json.lock'])
  })

  test('make the folder together', async () => {
    const user = new User()
    const names = Array.from({ length: 20 }, (_, index) => `s${index}`)
    const env = { ...user.env, PLANTS_CONFIG_DIR: join(user.folder, 'a/b/c') }
    const results = await Promise.all(names.map((name) => plants(['stores', 'add', name, `/${name}.db`], user.home, { env })))
    expect(results.filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
    const { stores } = JSON.parse(readFileSync(join(user.folder, 'a/b/c/settings.json'), 'utf8'))
    expect(Object.keys(stores).toSorted()).toEqual(names.toSorted())
  })

  test('let one alone take a name', async () => {
    const user = new User()
    const numbers = Array.from({ length: 10 }, (_, index) => index)
    const results = await Promise.all(numbers.map((n) => plants(['stores', 'add', 'team', `/${n}.db`], user.home, { env: user.env })))
    expect(results.map(({ code }) => code).toSorted()).toEqual([0, ...numbers.slice(1).map(() => 2)])
    const winner = results.findIndex(({ code }) => code === 0)
    expect(user.saved).toEqual({ version: 1, stores: { team: { address: `/${winner}.db` } } })
  })

  test('are read whole all the while', async () => {
    const user = new User()
    user.write({ stores: { team: { address: team } } })
    let isOver = false
    const writers = Promise.all(
      Array.from({ length: 10 }, (_, n) => plants(['config', 'set', 'timeout', `${n + 1}s`], user.home, { env: user.env })),
    ).finally(() => {
      isOver = true
    })
    const seen = new Set<number>()
    while (!isOver) {
      seen.add((await user.run('list --store ./none.db')).code)
      await new Promise(setImmediate)
    }
    expect([...seen]).toEqual([0])
    expect((await writers).map(({ code }) => code)).toEqual(Array.from({ length: 10 }, () => 0))
  })
})

describe('while another process holds the lock', () => {
  test('settings can be read, and a change ends when its time is over', async () => {
    const user = new User()
    user.write({ timeout: '7s', stores: { team: { address: team } } })
    const release = holdLock(user)
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
    expect((await user.run('stores list')).code).toBe(0)
    const { code, err } = await user.run('config set output json --timeout 50ms --output json')
    expect({ code, ...JSON.parse(err) }).toEqual({
      code: 4,
      error: 503,
      message: `Another process held ${user.file}.lock for 0.05 s`,
      hint: expect.any(String),
      retryable: true,
    })
    expect(user.saved).toEqual({ version: 1, timeout: '7s', stores: { team: { address: team } } })
    release()
    expect((await user.run('config set output json')).code).toBe(0)
  })

  test('a store is added with a short time-out of its own, as nobody waits for that store here', async () => {
    const user = new User()
    user.write({})
    const release = holdLock(user)
    const adding = user.run(['stores', 'add', 'team', team, '--timeout', '1ms'])
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate)
    release()
    expect(await adding).toEqual(answer({ name: 'team', address: team, timeout: '1ms' }))
  })

  test.runIf(isLinux).each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('a change ends at once on %s with %s, and nothing is changed (seen through /proc)', async (signal, code, message) => {
    const user = new User()
    user.write({ timeout: '7s' })
    const release = holdLock(user)
    const waiting = start(['config', 'set', 'output', 'json'], user.home, { env: user.env })
    const files = () => readdirSync(`/proc/${waiting.pid}/fd`).map((fd) => readlinkSync(`/proc/${waiting.pid}/fd/${fd}`))
    await expect.poll(files, { timeout: 20_000, interval: 5 }).toContain(`${user.file}.lock`)
    waiting.kill(signal)
    expect(await result(waiting)).toEqual({ code, out: '', err: expect.stringMatching(`^plants: ${message}`) })
    release()
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
  })

  function holdLock(user: User): () => void {
    const db = new DatabaseSync(`${user.file}.lock`)
    db.exec('BEGIN EXCLUSIVE')
    return () => db.close()
  }
})

describe('a process that is killed while it changes settings', () => {
  test('leaves them whole, old or new, and free for the next', { timeout: rounds(60_000) }, async () => {
    const user = new User()
    const answered = new Set<string>()
    const asked = new Set<string>()
    for (let round = 0; round < rounds(5); round += 1) {
      const names = Array.from({ length: 4 }, (_, index) => `r${round}-${index}`)
      for (const name of names) asked.add(name)
      for (const name of await addAndKill(names, user)) answered.add(name)
      const stores = Object.keys(savedStores(user))
      expect({
        round,
        lost: [...answered].filter((name) => !stores.includes(name)),
        strange: stores.filter((name) => !asked.has(name)),
        list: (await user.run('stores list')).code,
        change: await user.run(`config set timeout ${round + 1}s --timeout 1s`),
        names: readdirSync(user.folder).filter((name) => !name.startsWith('settings.json.lock')),
      }).toEqual({
        round,
        lost: [],
        strange: [],
        list: 0,
        change: answer({ name: 'timeout', value: `${round + 1}s` }),
        names: ['settings.json'],
      })
    }
  })

  describe.runIf(canTrace)('before one of its system calls, each in its turn (needs strace)', () => {
    const calls = [
      '?mkdir,mkdirat',
      '?rename,renameat,renameat2',
      'fsync',
      '?unlink,unlinkat',
      '?rmdir',
      'pwrite64',
      '?chmod,fchmod,fchmodat',
      'openat',
    ]

    test.each([
      ['makes the file', false],
      ['replaces the file', true],
    ])('and that %s, leaves it whole, and the next change works at once', { timeout: 120_000 }, async (_, isThere) => {
      const base = temporaryFolder()
      const results = await Promise.allSettled(calls.map((call) => killAtEach(call, isThere, base)))
      for (const { status, ...rest } of results) if (status === 'rejected') throw (rest as PromiseRejectedResult).reason
    })

    /** Kills a change before the first call of a kind, another before a later one, until one comes to its end. */
    async function killAtEach(call: string, isThere: boolean, base: string): Promise<void> {
      const old = isThere ? { version: 1, output: 'json' } : {}
      for (let when = 1, isOver = false; !isOver; when = nextPlace(when)) {
        const folder = join(base, `${call.replace(/\W/g, '')}-${when}`)
        const config = join(folder, 'config')
        const env = { PLANTS_CONFIG_DIR: config }
        const { signal, stdout } = await changeAndKillAt(call, when, folder, old)
        const saved = read(config)
        const next = await plants(['stores', 'add', 'next', '/next.db', '--output', 'json'], folder, { env })
        isOver = signal === undefined
        expect({ call, when, signal, saved, next, after: read(config), names: readdirSync(config) }).toEqual({
          ...{ call, when, signal: signal && 'SIGKILL', names: ['settings.json', 'settings.json.lock'] },
          saved: stdout === '' ? expect.toBeOneOf([old, { ...old, ...changed }]) : { ...old, ...changed },
          next: answer({ name: 'next', address: '/next.db' }),
          after: { version: 1, ...saved, stores: { next: { address: '/next.db' } } },
        })
      }
    }

    const changed = { version: 1, timeout: '1m' }

    function read(config: string): object {
      const file = join(config, 'settings.json')
      return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
    }

    function changeAndKillAt(call: string, when: number, folder: string, old: object) {
      const config = join(folder, 'config')
      const isThere = Object.keys(old).length > 0
      mkdirSync(isThere ? config : folder, { recursive: true, mode: 0o700 })
      if (isThere) writeFileSync(join(config, 'settings.json'), JSON.stringify(old), { mode: 0o600 })
      // node itself opens many files: of these calls only those on our own paths count
      const paths =
        call === 'openat'
          ? ['', '/settings.json', '/settings.json.lock', '/settings.json.lock-journal'].flatMap((name) => ['-P', config + name])
          : []
      const trace = ['-D', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:signal=KILL:when=${when}`, ...paths]
      return execa('strace', [...trace, bin, 'config', 'set', 'timeout', '1m'], {
        ...{ reject: false, stdin: 'ignore', extendEnv: false },
        env: { PATH: process.env['PATH'], HOME: folder, PLANTS_CONFIG_DIR: config },
      })
    }
  })
})

/** Adds stores at once, and kills those that are still at it when something has happened in the folder as often as chance says. */
async function addAndKill(names: string[], user: User): Promise<string[]> {
  mkdirSync(user.folder, { recursive: true, mode: 0o700 })
  const answered: string[] = []
  const adds = names.map((name) => start(['stores', 'add', name, `/${name}.db`], user.home, { env: user.env }))
  for (const [index, name] of names.entries()) adds[index]?.stdout?.once('data', () => answered.push(name))
  let left = Math.ceil(Math.random() * 40)
  const watcher = watch(user.folder, () => {
    left -= 1
    if (left === 0) for (const add of adds) add.kill('SIGKILL')
  })
  const results = await Promise.all(adds).finally(() => watcher.close())
  expect(results.filter(({ exitCode, signal }) => exitCode !== 0 && signal !== 'SIGKILL')).toEqual([])
  return answered
}

function savedStores(user: User): Record<string, unknown> {
  return existsSync(user.file) ? (JSON.parse(readFileSync(user.file, 'utf8')).stores ?? {}) : {}
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8)
}

/** A value as text in which the order of keys does not matter, and in which "__proto__" is a key like others. */
function entriesOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).map(([key, field]) => [key, entriesOf(field)] as const)
  return entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
}

function unwritable(user: User, why: string): string {
  const hint = 'Choose another folder with PLANTS_CONFIG_DIR, or use flags and variables instead'
  return `plants: The settings in ${user.file} could not be changed: ${why}\n  ${hint}\n`
}

async function asStranger(user: User, command: string, variables: Record<string, string> = {}) {
  const env = { ...user.env, ...variables }
  return result(startUnder('setpriv', becomeStranger, command.split(' '), user.home, { env, cwd: user.home }))
}

/** Runs a command where the settings folder is mounted read-only. */
async function onReadOnlyDisk(user: User, command: string) {
  const script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
  const under = ['-rm', 'sh', '-c', script, 'sh', user.folder]
  return result(startUnder('unshare', under, command.split(' '), user.home, { env: user.env, cwd: user.home }))
}

async function result(started: ReturnType<typeof start>) {
  const { exitCode, stdout, stderr } = await started
  return { code: exitCode, out: String(stdout), err: String(stderr) }
}
