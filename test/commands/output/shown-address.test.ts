import { expect, test } from 'vitest'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'

// Sandbox.run itself fails when a password is shown: each holds "s3cret".

test.each([
  '\t POSTGRES://U:S3CRETPW@127.0.0.1:1/DB \n',
  '"postgres://u:s3cretPw@127.0.0.1:1/db"',
  'jdbc:sqlserver://127.0.0.1;user=u;password=s3cretPw',
  'https://u:s3cret@s3cret@127.0.0.1',
  'https://s3cretToken@127.0.0.1',
  'https://127.0.0.1:1/?a=1&password=s3cretPw',
  's3cretOfSomebody',
])('the error for an invalid address does not repeat it: %s', async (address) => {
  const user = new Sandbox()
  const read = ['get 1', 'config list', 'doctor', 'auth status']
  const env = { PLANTS_STORE: address, PLANTS_TIMEOUT: '50ms' }
  for (const line of read) await user.run(`${line} --verbose`, { env })
  await user.run(['__complete', '--', '--store', ''], { env })
  for (const line of ['get 1 --store=A', 'stores add x A', 'stores init A', 'stores use A']) {
    const words = line.split(' ').map((word) => word.replace('A', () => address))
    expect((await user.run([...words, '--verbose', '--timeout', '50ms'])).code).not.toBe(0)
  }
  expect(user.saved).toBe(undefined)
  const settings = [{ store: 'team', stores: { team: { address } } }, { store: address }]
  for (const saved of settings)
    for (const line of [
      ...[...read, 'stores add team ./x.db', 'stores add team ./x.db --replace'],
      ...['stores remove team', '__complete bash stores'],
    ]) {
      user.save({ ...saved, timeout: '50ms' })
      await user.run(line)
    }
})

test('a message names the origin of an invalid address', async () => {
  const user = new Sandbox()
  const address = 'postgres//u:s3cret@h/db'
  user.save({ stores: { team: { address } } })
  for (const [place, words, env] of [
    ['--store', ['--store', address], {}],
    ['PLANTS_STORE', [], { PLANTS_STORE: address }],
    [`stores.team.address in ${user.file}`, ['--store', 'team'], {}],
  ] as const) {
    const { code, err } = await user.run(['list', '--output', 'json', ...words], { env })
    const message = `${place} does not name a store`
    expect([code, JSON.parse(err)]).toMatchObject([2, { error: 400, message }])
  }
})

test('text that looks like a password is shown where no address is expected', async () => {
  const user = new Sandbox()
  expect((await user.run(['import', 'a://u:pw@c.csv'])).err).toContain(
    'a://u:pw@c.csv could not be read: ',
  )
  user.write('pass=herbs.csv', 'id,name\n1,Sage\nx,Dill\n')
  expect((await user.run(['import', 'pass=herbs.csv'])).err).toContain('pass=herbs.csv:3: ')
})

test.each([
  { address: 'postgres://u:s3cretPw@h/db', shown: 'postgres://h:5432/db' },
  {
    address: 'postgres://me@h1,h2:1/plants?sslmode=verify-full',
    shown: 'postgres://h1:5432,h2:1/plants',
  },
  { address: 'https://user:s3cret@h.example', shown: '***' },
  { address: 'https://h.example/?token=s3cret', shown: '***' },
])(
  'the address $address is shown as $shown, without its user and its query',
  async ({ address, shown }) => {
    const user = new Sandbox({ stores: { team: { address } } })
    const env = { PLANTS_STORE: address }
    expect((await user.run('config get store', { env })).out).toBe(`${shown}\n`)
    for (const line of ['stores list', 'stores remove team'])
      expect((await user.run(line)).out).toContain(`"address":"${shown}"`)
  },
)

test
  .skipIf(isWindows)
  .each([
    ...[
      './a:b@c.db',
      '/srv/plants@1/a:b@c.db',
      'a:b.db',
      './key=1/what?.db',
      'https://key:4010/v1',
    ],
  ])('an address without secrets is shown as it is: %s (needs paths with /)', async (address) => {
  const env = { PLANTS_STORE: address }
  expect((await new Sandbox().run('config get store', { env })).out).toBe(`${address}\n`)
})
