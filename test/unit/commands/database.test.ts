import { beforeEach, expect, test } from 'vitest'
import { type Answer, Listener, message, says } from '../../helpers/postgres/listener.js'
import { refusal, World } from '../../helpers/world.js'

// What commands print is in transcripts/database.txt.

/** where nobody listens */
const nobody = 'postgres://ann@127.0.0.1:9/garden'

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
  ['--address', 'stores set db --address'],
])('a password in an address is rejected as an argument: %s of %s', async (place, line) => {
  user.save({ stores: { db: { address: '/x.db' } } })
  const { saved } = user
  for (const address of ['postgres://ann:s3cret@h1/garden', 'postgresql://h1/garden?password=s3cret'])
    expect(await user.run(`${line} ${address}`)).toEqual(
      refusal(
        `${place} contains a password, which other users could see in the list of processes`,
        'Remove it, and set PGPASSWORD, or write it to ~/.pgpass',
      ),
    )
  expect(user.saved).toEqual(saved)
})

test.each([
  ['postgres://h1/x', true],
  ['postgres://localhost,h1/x?sslmode=verify-ca', true],
  ['postgres://h1/x?sslmode=verify-full&sslrootcert=system', false],
  ['postgres://localhost,127.0.0.1,[::1]/x', false],
  ['postgres:///x?host=/run/pg', false],
])('a warning says that an attacker could impersonate the database: %s is %s', async (address, isWarned) => {
  const warning =
    /^plants: The connection to \S+ is not safe from an attacker on the network, .*\. Set sslmode=verify-full in its address\n/m
  for (const line of [
    `stores add db ${address}`,
    'stores use db',
    `config set store ${address}`,
    `stores set db --address ${address}`,
  ]) {
    const { code, err } = await user.run(line)
    expect({ line, code, isWarned: warning.test(err) }).toEqual({ line, code: 0, isWarned })
  }
})

test.each<[string, Answer, string, string, Record<string, string>]>([
  [
    'wants a password',
    says.scram,
    'it requires a password, but none is set',
    'Set PGPASSWORD, or write the password to ~/.pgpass',
    {},
  ],
  [
    'rejects the user',
    message('E', 'SFATAL\0C28000\0Mno such role\0\0'),
    'no such role',
    'Set PGPASSWORD, or write the password to ~/.pgpass',
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
