import { describe, expect, test } from 'vitest'
import { type Answer, Listener, message, says } from '../../helpers/postgres/listener.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

const garden = 'postgres://ann@h1:5432/garden'
/** where nobody listens */
const nobody = 'postgres://ann@127.0.0.1:9/garden'
const savedAt = '2026-01-02T03:04:05.678Z'
const isHidden = 'contains a password, which other users could see in the list of processes'
const hidden = 'Remove it, and set PGPASSWORD, or save it with: plants auth login'

/** Somebody who has a database, a service and a file. */
function gardener(saved: Record<string, unknown> = {}): World {
  const user = new World()
  user.save({
    stores: {
      db: { address: garden },
      team: { address: 'https://plants.example.com' },
      file: { address: '/srv/x.db' },
    },
    ...saved,
  })
  return user
}

describe('the address of a database with a password', () => {
  test.each([
    ['--store', 'get 1 --store ADDRESS'],
    ['The address', 'stores add mine ADDRESS'],
    ['The address', 'stores init ADDRESS'],
    ['store', 'stores use ADDRESS'],
    ['store', 'config set store ADDRESS'],
    ['stores.db.address', 'config set stores.db.address ADDRESS'],
  ])('is refused as an argument: %s of %s', async (place, line) => {
    for (const address of ['postgres://ann:s3cret@h1/garden', 'postgresql://h1/garden?password=s3cret']) {
      const user = gardener()
      const { saved } = user
      expect(await user.run(line.replace('ADDRESS', address))).toEqual(refusal(`${place} ${isHidden}`, hidden))
      expect(user.saved).toEqual(saved)
    }
  })

  test('is not shown by an error that has nothing to do with it', async () => {
    const { code, err } = await new World().run('get postgres://ann:s3cret@h1/garden')
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('postgres://ann:***@h1/garden') })
  })

  test('may stand in the settings file and in PLANTS_STORE, and is not shown', async () => {
    const user = gardener({ stores: { db: { address: 'postgres://ann:s3cret@h1:5432/garden' } } })
    const shown = 'postgres://ann:***@h1:5432/garden'
    const world = { env: { PLANTS_STORE: 'postgres://bob:s3cret@h1/garden' } }
    expect((await user.run('stores list', world)).out).toContain(`{"name":"db","address":"${shown}","inUse":false}\n`)
    expect((await user.run('stores list', world)).out).toContain(
      '{"address":"postgres://bob:***@h1/garden","inUse":true}\n',
    )
    expect(await user.run('config get stores.db.address')).toEqual(printed(`${shown}\n`))
    expect(await user.run('config get store', world)).toEqual(printed('postgres://bob:***@h1/garden\n'))
    expect((await user.run('stores add db /x.db')).err).toContain(`The store db already exists: ${shown}\n`)
    expect((await user.run('__complete -- stores remove d')).out).toContain(`db\t${shown}\n`)
    expect((await user.run('get 1 --verbose --timeout 10ms', world)).err).toContain(
      '* store postgres://bob:***@h1/garden (PLANTS_STORE)\n',
    )
  })
})

describe('a database with a name', () => {
  test('is saved with its whole address', async () => {
    const user = new World()
    const fields = { name: 'db', address: 'postgres://gardener@h1:5432,h2:5433/plants?sslmode=verify-full' }
    const line = 'stores add db postgres://h1,h2:5433/plants?sslmode=verify-full&connect_timeout=5'
    expect(await user.run(line)).toEqual(answer(fields))
  })

  test.each([
    ['postgres://h1/x', true],
    ['postgres://localhost,h1/x?sslmode=require', true],
    ['postgres://h1/x?sslmode=verify-ca', true],
    ['postgres://h1/x?sslmode=verify-full', false],
    ['postgres://h1/x?sslrootcert=system', false],
    ['postgres://localhost,127.0.0.1,[::1]/x', false],
    ['postgres:///x?host=/run/pg', false],
  ])('is warned of where it could be another one: %s is %s', async (address, isWarned) => {
    const user = new World()
    const warning =
      /^plants: The connection to \S+ is not safe from an attacker on the network, .*\. Set sslmode=verify-full in its address\n/m
    for (const line of [
      `stores add db ${address}`,
      'stores use db',
      `stores use ${address}`,
      'config set store db',
      `config set store ${address}`,
      `config set stores.db.address ${address}`,
    ]) {
      const { code, err } = await user.run(line)
      expect({ line, code, isWarned: warning.test(err) }).toEqual({ line, code: 0, isWarned })
    }
  })

  test.each([
    [
      'stores add x postgres://h1/x --allow-http',
      '--allow-http is for a service, and postgres://gardener@h1:5432/x is a database',
    ],
    [
      'stores add x postgres://h1/x --token-command pass',
      '--token-command is for a service, and postgres://gardener@h1:5432/x is a database',
    ],
    ['stores add x ./x.db --allow-http', '--allow-http is for a service, and HOME/x.db is a file'],
  ])('has only the settings of its kind: %s', async (line, message) => {
    const user = gardener()
    const text = message.replace('HOME', user.home)
    expect(await user.run(line)).toEqual(refusal(text, 'Leave it out'))
  })

  test('names its certificates in its address, not with --ca-cert', async () => {
    const message = '--ca-cert is for a service, and postgres://gardener@h1:5432/x is a database'
    const hint = 'Leave it out, and add to the address: sslrootcert=ca.pem'
    expect(await gardener().run('stores add x postgres://h1/x --ca-cert ca.pem')).toEqual(refusal(message, hint))
  })

  test('has only the settings of its kind, also later', async () => {
    const user = gardener({
      stores: { db: { address: garden }, web: { address: 'https://x.example', 'allow-http': true } },
    })
    const other = 'Set it for another store'
    expect(await user.run('config set stores.db.ca-cert ca.pem')).toEqual(
      refusal('ca-cert is for a service, and db is a database', other),
    )
    const held = 'web has the setting allow-http, which is for a service, and /x.db is a file'
    expect(await user.run('config set stores.web.address /x.db')).toEqual(
      refusal(held, 'Unset it first: plants config unset stores.web.allow-http'),
    )
  })

  test('is forgotten with its password, which other parameters do not change', async () => {
    const tokens = { [garden]: { token: 's3cret', savedAt } }
    const user = gardener({ stores: { db: { address: `${garden}?max=9` }, again: { address: garden } }, tokens })
    expect(await user.run('stores remove db')).toMatchObject({ code: 0 })
    expect(user.saved).toMatchObject({ tokens })
    expect(await user.run('stores remove again --output text')).toEqual(
      printed(`Removed the store again and its password. Its plants are still in ${garden}\n`),
    )
    expect(user.saved).toMatchObject({ tokens: {} })
  })
})

describe('plants auth, for a database', () => {
  test('keeps a password for who logs in where, whatever else the address says', async () => {
    const user = new World()
    const flags = ['--store', `${nobody}?max=9`, '--timeout', '10ms']
    const { code, out, err } = await user.run(['auth', 'login', '--with-token', ...flags], { stdin: ' s3cret word \n' })
    const fields = { store: nobody, address: nobody, source: 'file', savedAt: expect.any(String) }
    expect({ code, ...JSON.parse(out) }).toEqual({ code: 0, ...fields, checked: false })
    expect(err).toContain('plants: The password is saved, but could not be checked: ')
    expect(user.saved).toMatchObject({ tokens: { [nobody]: { token: ' s3cret word ' } } })
    expect(await user.run(['auth', 'token', '--store', nobody])).toEqual(printed(' s3cret word \n'))
    const found = JSON.parse((await user.run(['auth', 'token', '--store', nobody, '--output', 'json'])).out)
    expect(found).toEqual({ password: ' s3cret word ', source: 'file', savedAt: expect.any(String) })
    expect(await user.run(['auth', 'logout', '--store', nobody, '--output', 'text'])).toEqual(
      printed(`Removed the password for ${nobody}\n`),
    )
    expect(user.saved).toEqual({ version: 1, tokens: {} })
  })

  test('tells where the password comes from', async () => {
    const user = gardener({ tokens: { [garden]: { token: 's3cret', savedAt } } })
    const status = async (flags: string, env: Record<string, string> = {}) =>
      user.run(`auth status ${flags}`.trim(), { env })
    expect(await status('--store db')).toEqual(answer({ store: 'db', address: garden, source: 'file', savedAt }))
    expect(await status('--store db --output text', { PGPASSWORD: 's3cret' })).toEqual(
      printed(`db (${garden}): from PGPASSWORD\n`),
    )
    expect(await status('', { PLANTS_STORE: 'postgres://ann:s3cret@h2/garden' })).toEqual(
      answer(
        { store: 'postgres://ann@h2:5432/garden', address: 'postgres://ann@h2:5432/garden', source: 'address' },
        { store: garden, address: garden, source: 'file', savedAt },
      ),
    )
    const none = { store: 'postgres://ann@h2:5432/garden', address: 'postgres://ann@h2:5432/garden', source: 'none' }
    const how = 'set PGPASSWORD, or save it with: plants auth login --store postgres://ann@h2/garden'
    expect(await status('--store postgres://ann@h2/garden')).toEqual({
      ...refusal('There is no password for postgres://ann@h2:5432/garden', `If it requires one: ${how}`, 3),
      out: `${JSON.stringify(none)}\n`,
    })
  })

  test('warns when an attacker on the network could impersonate the database', async () => {
    const flags = ['--with-token', '--store', nobody.replace('127.0.0.1', '0.0.0.0'), '--timeout', '10ms']
    expect((await new World().run(['auth', 'login', ...flags], { stdin: 's3cret' })).err).toContain(
      '. Set sslmode=verify-full in its address\n',
    )
  })

  test.each([
    ['', 'is empty'],
    ['s3cret\nword\n', 'contains a line break or U+0000'],
    ['s3cret'.repeat(200), 'is longer than 1000 bytes'],
  ])('takes no %j', async (stdin, why) => {
    const user = gardener()
    const problem = `The password on stdin ${why}`
    expect(await user.run('auth login --store db --with-token', { stdin })).toEqual(
      refusal(problem, 'Copy the password again, without any other text'),
    )
    expect(await user.run('auth login --store db')).toEqual(
      refusal('Cannot prompt for the password', 'Read it from stdin: plants auth login --store db --from-stdin < FILE'),
    )
  })

  const ask = 'Check the user in the address, or ask the administrator of the database how to log in'

  test.each<[string, Answer, string, string, Record<string, string>]>([
    [
      'wants a password',
      says.scram,
      'it requires a password, but none is set',
      'Set PGPASSWORD, or save the password',
      {},
    ],
    ['rejects the user', message('E', 'SFATAL\0C28000\0Mno such role\0\0'), 'no such role', ask, {}],
    [
      'rejects the password',
      says.refused,
      'wrong password',
      'The password is from PGPASSWORD',
      { PGPASSWORD: 's3cret' },
    ],
  ])('is asked for without a doubt where the server %s', async (_, answer, why, hint, env) => {
    const { port } = await Listener.start([answer])
    const name = `postgres://ann@127.0.0.1:${port}/garden`
    const { code, err } = await new World().run(['list', '--store', name, '--timeout', '1s'], { env })
    expect({ code, err }).toEqual({
      code: 3,
      err: expect.stringContaining(`plants: ${name} rejected the login of ann: ${why}\n  ${hint}`),
    })
  })

  test('says what wins over a saved one', async () => {
    const env = { PGPASSWORD: 's3cret-of-env' }
    const flags = ['--with-token', '--store', nobody, '--timeout', '10ms']
    const { err } = await new World().run(['auth', 'login', ...flags], { env, stdin: 's3cret' })
    expect(err).toContain('plants: PGPASSWORD is still set, and takes precedence\n')
    expect(err).not.toContain('sslmode=verify-full')
  })
})

test.each([
  [
    'backup x.bak',
    `${garden} is a database, which has backups of its own`,
    'Use pg_dump, or write its plants to a file: plants export --out FILE',
  ],
  [
    'restore x.bak',
    `${garden} is a database, which has backups of its own`,
    'Use pg_restore, or create the plants of a store in it: plants export --store FILE | plants import',
  ],
])('a database cannot %s', async (line, message, hint) => {
  expect(await gardener().run(`${line} --store db`)).toEqual(refusal(message, hint))
})

test('an import into a database says which flags are for services', async () => {
  const { err } = await gardener().run(['import', '--concurrency', '5', '--store', nobody, '--timeout', '10ms'], {
    stdin: '{"id":1,"name":"Fern"}',
  })
  expect(err).toContain('plants: --concurrency applies only to services, and has no effect on a database\n')
})

test('only a database needs to be initialised', async () => {
  const hint = 'For example: plants stores init postgres://postgres@db.example.com/plants --role plants'
  expect(await gardener().run('stores init file')).toEqual(
    refusal('/srv/x.db is a file: only a database needs to be initialised', hint),
  )
  expect(await gardener().run('stores init team')).toEqual(
    refusal('https://plants.example.com is a service: only a database needs to be initialised', hint),
  )
  for (const role of ['public', 'PUBLIC', 'none']) {
    const why = role === 'none' ? 'is not a role' : 'is every role'
    expect(await gardener().run(`stores init db --role ${role}`)).toEqual(
      refusal(`--role ${role} ${why}`, 'Use the role that plants serve logs in as'),
    )
  }
  expect(await gardener().run('stores init db --role=')).toEqual(
    refusal('--role is empty', 'Give it a value, or leave it out'),
  )
})

test('a password is not taken as a flag', async () => {
  expect(await new World().run('list --password s3cret')).toEqual(
    refusal(
      'A password is not accepted on the command line, where other users can see it',
      'Set PGPASSWORD. To save it, see: plants auth login --help',
    ),
  )
})
