import { expect, test } from 'vitest'
import { linesOf } from '../../helpers/redacting.js'
import { isWindows, printed, World } from '../../helpers/world.js'

// World.run itself fails when a password is shown: each holds "s3cret".

test.each([
  '\t POSTGRES://U:S3CRETPW@127.0.0.1:1/DB \n',
  ...linesOf(`
    host=127.0.0.1 password=s3cretPw dbname=x
    "postgres://u:s3cretPw@127.0.0.1:1/db"
    postgres+ssl://u:s3cretPw@127.0.0.1:1/db
    jdbc:sqlserver://127.0.0.1;user=u;password=s3cretPw
    sqlite:sqlite:postgres://u:s3cretPw@127.0.0.1/db
    https://u:s3cret@s3cret@127.0.0.1
    https://u:s3cret s3cret@127.0.0.1
    https:u:s3cret@127.0.0.1
    https://s3cretToken@127.0.0.1
    postgres//u:s3cretPw@127.0.0.1/db
    u:s3cret//Pw:s3cret@s3cret@127.0.0.1/db
    https://127.0.0.1:1/?a=1&password=s3cretPw`),
])('what stands where an address belongs, and is none, is not repeated: %s', async (address) => {
  const user = new World()
  const env = { PLANTS_STORE: address, PLANTS_TIMEOUT: '50ms' }
  for (const line of [
    'get 1',
    'config list',
    'config get store',
    'doctor',
    'stores list',
    'auth status',
    'tokens list',
  ])
    await user.run(`${line} --verbose`, { env })
  await user.run(['__complete', '--', '--store', ''], { env })
  for (const line of [
    'get 1 --store=A',
    'stores add x A',
    'stores init A',
    'config set store A',
    'stores use A',
  ]) {
    const words = line.split(' ').map((word) => word.replace('A', () => address))
    expect((await user.run([...words, '--verbose', '--timeout', '50ms'])).code).not.toBe(0)
  }
  expect(user.saved).toBe(undefined)
  const ofTeam = [
    'get 1',
    'config list',
    'stores list',
    'doctor',
    'auth status',
    ['__complete', 'bash', 'plants stores use '],
  ]
  for (const line of [
    ...ofTeam,
    'stores add team ./x.db',
    'stores add team ./x.db --replace',
    'stores remove team',
  ]) {
    user.save({ store: 'team', stores: { team: { address } }, timeout: '50ms' })
    await user.run(line)
  }
  user.save({ store: address, timeout: '50ms' })
  for (const line of ['get 1', 'config get store', 'stores list'])
    await user.run(`${line} --verbose`)
})

test('a message names where the text came from', async () => {
  const user = new World()
  const address = 'postgres//u:s3cret@h/db'
  const hint = expect.stringContaining('a path (./plants.db)')
  const rejected = (place: string) => ({
    error: 400,
    message: `${place} does not name a store`,
    hint,
  })
  const run = async (words: string[], env = {}) =>
    JSON.parse((await user.run([...words, '--output', 'json'], { env })).err)
  expect(await run(['list', '--store', address])).toEqual(rejected('--store'))
  expect(await run(['list'], { PLANTS_STORE: address })).toEqual(rejected('PLANTS_STORE'))
  user.save({ stores: { team: { address } } })
  expect(await run(['list', '--store', 'team'])).toEqual(
    rejected(`stores.team.address in ${user.file}`),
  )
})

test('a word that looks like a password or an address is shown where none belongs', async () => {
  const user = new World()
  expect((await user.run(['import', 'a://u:pw@c.csv'])).err).toMatch(
    /^plants: Could not read a:\/\/u:pw@c\.csv: no such file or directory\n/,
  )
  user.write('pass=herbs.csv', 'id,name\n1,Sage\nx,Dill\n')
  const { err } = await user.run(['import', 'pass=herbs.csv'])
  expect(err).toContain('pass=herbs.csv:3: Invalid plant')
  expect(err).not.toContain('***')
})

test.each([
  ['postgres://u:s3cretPw@h/db', 'postgres://h:5432/db'],
  [
    'postgres://me@db.example.com,h2:1/plants?sslmode=verify-full',
    'postgres://db.example.com:5432,h2:1/plants',
  ],
  ['https://user:s3cret@h.example', '***'],
  ['https://h.example/?token=s3cret', '***'],
])(
  'config and stores show an address without its user and its query: %s',
  async (address, shown) => {
    const user = new World()
    const env = { PLANTS_STORE: address }
    expect(await user.run('config get store', { env })).toEqual(printed(`${shown}\n`))
    user.save({ stores: { team: { address } } })
    expect((await user.run('stores list')).out).toContain(JSON.stringify(shown))
    expect((await user.run('stores remove team')).out).toContain(`"address":"${shown}"`)
  },
)

test.skipIf(isWindows)('any other address is shown as it is (needs paths with /)', async () => {
  const user = new World()
  for (const address of linesOf(`
    ./a:b@c.db
    /srv/plants@1/a:b@c.db
    a:b.db
    ./key=1/what?.db
    https://key:4010/v1`))
    expect(await user.run('config get store', { env: { PLANTS_STORE: address } })).toEqual(
      printed(`${address}\n`),
    )
})

test('PLANTS_STORE may have spaces around it', async () => {
  const env = { PLANTS_STORE: ' ./a.db\n' }
  expect(await new World().run('config get store', { env })).toEqual(printed('./a.db\n'))
})

test('a word that names no saved store is not repeated, nor is the name of a store that is none', async () => {
  const user = new World({ store: 's3cretOfSomebody', stores: { team: { address: 's3cretWord' } } })
  const env = { PLANTS_STORE: 's3cretOfSomebody' }
  for (const line of ['list', 'config get store', 'config list', 'stores list', 'doctor'])
    for (const run of [{ env }, {}]) await user.run(`${line} --verbose`, run)
  for (const line of ['stores use s3cretWord', 'stores remove s3cretWord'])
    expect((await user.run(line)).code).toBe(2)
  expect((await user.run('stores remove team')).out).toContain('"address":"***"')
})
