import { beforeEach, describe, expect, test } from 'vitest'
import { type Answer, Listener, message, says } from '../../helpers/postgres/listener.js'
import { printed, refusal, World } from '../../helpers/world.js'

// What commands print is in transcripts/database.txt.

/** where nobody listens */
const nobody = 'postgres://ann@127.0.0.1:9/garden'
const login = (address: string) => ['auth', 'login', '--with-token', '--store', address, '--timeout', '10ms']

let user: World

beforeEach(() => {
  user = new World()
})

test.each([
  ['--store', 'get 1 --store'],
  ['The address', 'stores add mine'],
  ['store', 'stores use'],
  ['The address', 'stores init'],
  ['store', 'config set store'],
  ['stores.db.address', 'config set stores.db.address'],
])('a password in an address is rejected as an argument: %s of %s', async (place, line) => {
  user.save({ stores: { db: { address: '/x.db' } } })
  const { saved } = user
  for (const address of ['postgres://ann:s3cret@h1/garden', 'postgresql://h1/garden?password=s3cret'])
    expect(await user.run(`${line} ${address}`)).toEqual(
      refusal(
        `${place} contains a password, which other users could see in the list of processes`,
        'Remove it, and set PGPASSWORD, or save it with: plants auth login',
      ),
    )
  expect(user.saved).toEqual(saved)
})

test.each([
  ['postgres://h1/x', true],
  ['postgres://localhost,h1/x?sslmode=verify-ca', true],
  ['postgres://h1/x?sslrootcert=system', false],
  ['postgres://localhost,127.0.0.1,[::1]/x', false],
  ['postgres:///x?host=/run/pg', false],
])('a warning says that an attacker could impersonate the database: %s is %s', async (address, isWarned) => {
  const warning =
    /^plants: The connection to \S+ is not safe from an attacker on the network, .*\. Set sslmode=verify-full in its address\n/m
  for (const line of [
    `stores add db ${address}`,
    'stores use db',
    `config set store ${address}`,
    `config set stores.db.address ${address}`,
  ]) {
    const { code, err } = await user.run(line)
    expect({ line, code, isWarned: warning.test(err) }).toEqual({ line, code: 0, isWarned })
  }
})

describe('plants auth login', () => {
  test('saves a password without its parameters, and with its spaces', async () => {
    const { code, out, err } = await user.run(login(`${nobody}?max=9`), { stdin: ' s3cret word \n' })
    const fields = { store: nobody, address: nobody, source: 'file', savedAt: expect.any(String), checked: false }
    expect({ code, ...JSON.parse(out) }).toEqual({ code: 0, ...fields })
    expect(err).toContain('plants: The password is saved, but could not be checked: ')
    expect(err).not.toMatch(/sslmode=verify-full|PGPASSWORD/)
    expect(await user.run(`auth token --store ${nobody}`)).toEqual(printed(' s3cret word \n'))
    expect(await user.run(`auth logout --store ${nobody} --output text`)).toEqual(
      printed(`Removed the password for ${nobody}\n`),
    )
    expect(user.saved).toEqual({ version: 1, tokens: {} })
  })

  test('warns of an attacker on the network, and that PGPASSWORD takes precedence', async () => {
    const env = { PGPASSWORD: 's3cret-of-env' }
    const { err } = await user.run(login(nobody.replace('127.0.0.1', '0.0.0.0')), { stdin: 's3cret', env })
    expect(err).toContain('. Set sslmode=verify-full in its address\n')
    expect(err).toContain('plants: PGPASSWORD is still set, and takes precedence\n')
  })

  test('rejects a password of more than 1000 bytes', async () => {
    const stdin = 's3cret'.repeat(200)
    expect(await user.run(login(nobody), { stdin })).toEqual(
      refusal('The password on stdin is longer than 1000 bytes', 'Copy the password again, without any other text'),
    )
  })
})

test.each<[string, Answer, string, string, Record<string, string>]>([
  [
    'wants a password',
    says.scram,
    'it requires a password, but none is set',
    'Set PGPASSWORD, or save the password',
    {},
  ],
  [
    'rejects the user',
    message('E', 'SFATAL\0C28000\0Mno such role\0\0'),
    'no such role',
    'Set PGPASSWORD, or save the password',
    {},
  ],
  ['rejects the password', says.refused, 'wrong password', 'The password is from PGPASSWORD', { PGPASSWORD: 's3cret' }],
])('exit code 3 where the server %s', async (_, answer, why, hint, env) => {
  const { port } = await Listener.start([answer])
  const name = `postgres://127.0.0.1:${port}/garden`
  expect(await user.run(`list --store ${name.replace('//', '//ann@')} --timeout 1s`, { env })).toMatchObject({
    code: 3,
    err: expect.stringContaining(`plants: ${name} rejected the login of ann: ${why}\n  ${hint}`),
  })
})

test('an import into a database names the flags that are for services', async () => {
  const stdin = '{"id":1,"name":"Fern"}'
  const { err } = await user.run(`import --concurrency 5 --store ${nobody} --timeout 10ms`, { stdin })
  expect(err).toContain('plants: --concurrency applies only to services, and has no effect on a database\n')
})
