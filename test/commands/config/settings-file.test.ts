import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isWindows, readMode, Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'

const team = 'https://plants.example.com/v1'
const token = 's3cret-Token'

const commands = [
  ['list', 'config set timeout 1m'],
  ['create --id 1 --name Fern', 'config unset timeout'],
  ['config list', 'stores add garden ./garden.db'],
  ['config get timeout', 'stores use local'],
  ['stores list', 'stores remove team'],
  ['auth status', `auth login --from-stdin --store ${team}`],
  ['config list', `auth logout --store ${team}`],
] as const

/** Settings, and why they are broken, in the words of the message. */
const broken: [content: string | Uint8Array, why: string][] = [
  [`{"tokens":{"a":${token}}}`, 'are not JSON (column 16)'],
  ['{\n  "version": 1,\n}\n', 'are not JSON (line 2, column 15)'],
  [
    `{\n  "version": 1,\n  "store": ${token},\n  "output": "json"\n}\n`,
    'are not JSON (line 3, column 12)',
  ],
  [`{\n  "version": 1,\n  "stores": {`, 'are not JSON (line 3, column 14)'],
  ['', 'are not JSON (column 1)'],
  [Buffer.from('{"version":1,"a":"\xe9"}', 'latin1'), 'are not UTF-8'],
  ['{"version":2,"stores":[]}', 'version must be 1'],
  [`{"version":"${token}"}`, 'version must be 1'],
  ['{"version":1,"stores":[],"tokens":null}', 'stores must be an object; tokens must be an object'],
  [
    `{"version":1,"stores":{"team":{"address":"${team}","token-command":1,"allow-http":"yes"}}}`,
    'stores.team.allow-http must be true or false; stores.team.token-command must be a string',
  ],
  [
    `{"version":1,"tokens":{"${token}":{"token":1}}}`,
    'tokens.***.token must be a string; tokens.***.savedAt must be a string',
  ],
  [
    '{"version":1,"stores":{"postgres://ann:s3cret@h/x":{"address":5}}}',
    'stores.***.address must be a string',
  ],
]

const uid = process.getuid?.() ?? 0
/** The groups that may own the files of this user. */
const groups = uid === 0 ? [uid, 12_345] : (process.getgroups?.() ?? [])
const otherGroup = groups.find((gid) => gid !== uid)

test.each(broken.map(([content, why], at) => [String(content), why, at, content] as const))(
  'an error names the broken settings %j, which stay as they are: %s',
  async (_, why, at, content) => {
    const user = new Sandbox()
    user.save(content)
    for (const command of commands[at % commands.length] ?? []) {
      const { code, out, err } = await user.run(`${command} --output json`, { stdin: token })
      const { message, ...error } = JSON.parse(err)
      expect({ command, code, out, error }).toMatchObject({
        ...{ command, code: 2, out: '', error: { error: 400 } },
      })
      expect(message.startsWith(`The settings in ${user.file} are `)).toBe(true)
      expect(message.endsWith(why)).toBe(true)
    }
    expect(readFileSync(user.file).equals(Buffer.from(content))).toBe(true)
    expect(readdirSync(user.home, { recursive: true }).toSorted()).toEqual([
      ...['config', join('config', 'settings.json')],
    ])
  },
)

test.each([
  { name: 'output', wrong: 'xml', right: 'json' },
  { name: 'timeout', wrong: 'soon', right: '1m' },
  { name: 'store', wrong: '', right: 'local' },
])(
  'config set and config unset correct a wrong setting $name from $wrong to $right',
  async ({ name, wrong, right }) => {
    for (const command of [`config set ${name} ${right}`, `config unset ${name}`]) {
      const user = new Sandbox({ [name]: wrong })
      expect((await user.run('list')).code).toBe(2)
      expect([command, (await user.run(command)).code]).toEqual([command, 0])
      expect((await user.run('list')).code).toBe(0)
    }
  },
)

test('an error names a directory in the place of the settings file', async () => {
  const user = new Sandbox()
  mkdirSync(user.file, { recursive: true })
  const err = expect.stringContaining(`The settings in ${user.file} could not be read: `)
  for (const command of ['config list', 'config set timeout 1m', 'list'])
    expect(await user.run(command)).toEqual({ code: 2, out: '', err })
  expect(readdirSync(user.config, { recursive: true })).toEqual(['settings.json'])
})

test('a settings file larger than 16 MiB is not read', async () => {
  const user = new Sandbox({ timeout: '7s' })
  truncateSync(user.file, 16 * 1_048_576 + 1)
  const message = `The settings in ${user.file} could not be read: file too large`
  for (const command of ['config list', 'config set timeout 1m', 'list']) {
    const { code, err } = await user.run(command)
    expect([code, err]).toEqual([2, expect.stringContaining(message)])
    expect(err).toContain('Move it away')
  }
})

describe.skipIf(isWindows)('a settings file (needs modes)', () => {
  test.each([
    ['a pipe to which nobody writes', (path: string) => spawnSync('mkfifo', ['-m', '600', path])],
    ['a device without end', (path: string) => symlinkSync('/dev/zero', path)],
  ])('that is %s is named in an error, and not waited for', async (_, make) => {
    const user = new Sandbox({})
    rmSync(user.file)
    make(user.file)
    const message = `The settings in ${user.file} could not be read: it is not a file`
    for (const command of ['config list', 'config set timeout 1m', 'create --id 1 --name Fern']) {
      const { code, out, err } = await user.run(command)
      expect([code, out, err]).toEqual([2, '', expect.stringContaining(message)])
    }
  })

  test('that others can write to is rejected', async () => {
    const user = new Sandbox({ timeout: '7s' })
    chmodSync(user.file, 0o602)
    const err = expect.stringContaining('can be changed by other users (mode 602)')
    for (const command of [
      'config get timeout',
      'create --id 1 --name Fern',
      'config set timeout 8s',
    ])
      expect(await user.run(command)).toEqual({ code: 2, out: '', err })
    chmodSync(user.file, 0o600)
    expect(await user.run('config get timeout')).toEqual(toTextResult('7s\n'))
  })

  test.runIf(otherGroup !== undefined).each([
    { mode: '620', isRead: false },
    { mode: '660', isRead: false },
    { mode: '640', isRead: true },
  ])(
    'of mode $mode and another group is read: $isRead (needs groups)',
    async ({ mode, isRead }) => {
      const user = new Sandbox({ timeout: '7s' })
      chownSync(user.file, uid, otherGroup ?? uid)
      chmodSync(user.file, mode)
      const { code, out, err } = await user.run('create --id 1 --name Fern')
      expect([code, out]).toEqual(isRead ? [0, '{"name":"Fern"}\n'] : [2, ''])
      const problem = isRead
        ? `Other users can read the settings in ${user.file}`
        : `The settings file ${user.file} was not read, because it can be changed by other users`
      expect(err).toContain(`${problem} (mode ${mode})`)
      expect(err).toContain(`chmod 600 ${user.file}\n`)
    },
  )

  test.runIf(groups.includes(uid))(
    'of mode 660 is read if its group has the number of its owner (needs such a group)',
    async () => {
      const user = new Sandbox({ timeout: '7s' })
      chownSync(user.file, uid, uid)
      chmodSync(user.file, 0o660)
      const { code, err } = await user.run('config get timeout')
      expect([code, err]).toEqual([0, expect.stringContaining('(mode 660)')])
    },
  )

  test('that others can read causes a warning, and is for its owner only after a change', async () => {
    const user = new Sandbox({ timeout: '7s' })
    chmodSync(user.config, 0o777)
    expect(await user.run('config get timeout')).toEqual(toTextResult('7s\n'))
    for (const [command, mode] of [
      ['create --id 1 --name Fern', 0o640],
      ['config set timeout 8s', 0o604],
    ] as const) {
      chmodSync(user.file, mode)
      const warning = `Other users can read the settings in ${user.file} (mode ${mode.toString(8)})`
      expect((await user.run(command)).err).toContain(warning)
    }
    expect(readMode(user.file)).toBe('600')
  })
})

test.skipIf(isWindows)(
  'settings are not saved through a link to a missing file (needs links)',
  async () => {
    const user = new Sandbox({})
    rmSync(user.file)
    symlinkSync('nothing.json', user.file)
    const err = expect.stringMatching(
      /could not be written: it is a symbolic link .*\n .*PLANTS_CONFIG_DIR/,
    )
    expect(await user.run('config set timeout 1m')).toEqual({ code: 74, out: '', err })
  },
)

test('the error for a U+0000 in a setting says where it is', async () => {
  const user = new Sandbox()
  user.save({ store: './garden\0.db' })
  const err = expect.stringMatching(/^plants: store in \S+settings\.json contains U\+0000\n/)
  expect(await user.run('list')).toEqual({ code: 2, out: '', err })
})
