import { expect, test } from 'vitest'
import { linesOf } from '../../helpers/redacting.js'
import { printed, World } from '../../helpers/world.js'

// World.run itself fails when a password is shown: each holds "s3cret".

const addresses = [
  '\t POSTGRES://U:S3CRETPW@127.0.0.1:1/DB \n',
  ...linesOf(`
    user=u pass=s3cretPw host=127.0.0.1
    PGPASS=s3cretPw host=127.0.0.1
    password: s3cretPw host: 127.0.0.1
    host=127.0.0.1 password=s3cretPw dbname=x
    host=127.0.0.1 password = 's3cret with \\' spaces' dbname=x
    dbname=x PASSWORD=s3cretPw
    "postgres://u:s3cretPw@127.0.0.1:1/db"
    pg://u:s3cretPw@127.0.0.1:1/db
    postgres+ssl://u:s3cretPw@127.0.0.1:1/db
    mysql://127.0.0.1/db?user=u&password=s3cretPw
    jdbc:sqlserver://127.0.0.1;user=u;password=s3cretPw
    sqlite:sqlite:postgres://u:s3cretPw@127.0.0.1/db
    unix:postgres://u:s3cretPw@127.0.0.1/db
    https://u:s3cret/s3cret@127.0.0.1
    https://u:s3cret@s3cret@127.0.0.1
    https://u:s3cret?s3cret#s3cret@127.0.0.1
    https://u:s3cret s3cret@127.0.0.1
    https:/u:s3cret@127.0.0.1
    https:u:s3cret@127.0.0.1
    https:\\\\u:s3cret@127.0.0.1
    HTTP:///u:s3cret@127.0.0.1/@s3cret@/v1
    https//u:s3cretPw@127.0.0.1
    https://s3cretToken@127.0.0.1
    postgres//u:s3cretPw@127.0.0.1/db
    postgres:u:s3cretPw@127.0.0.1/db
    postgres/u:s3cretPw@127.0.0.1/db
    u:s3cretPw@127.0.0.1/db
    u:s3cret//Pw:s3cret@s3cret@127.0.0.1/db
    postgres:////u:s3cretPw@127.0.0.1/db
    postgres:\\\\u:s3cretPw@127.0.0.1/db
    postgres%3A%2F%2Fu%3As3cretPw%40127.0.0.1/db
    pg://u:s3cret%40%2FPw@127.0.0.1/db
    pg://u:s3cret@s3cret/s3cret?s3cret#s3cret@127.0.0.1/db
    PLANTS_STORE=postgres://u:s3cretPw@127.0.0.1/db
    https://127.0.0.1:1/?a=1&password=s3cretPw`),
].map((address, index) => ({ address, index }))

test.each(['PGPASS=s3cretPw host=h', 'user=u pwd=s3cretPw', 'user=u passwd=s3cretPw'])(
  'a password of libpq as a command is shown nowhere: %s',
  async (command) => {
    expect((await new World().run([command])).code).toBe(2)
  },
)

test.each(addresses)(
  'a password in what is not quite an address is shown nowhere: $address',
  async ({ address, index }) => {
    // Each address in each kind of place, with one command of each kind in its turn.
    const some = <Item>(...items: Item[]) => items.filter((_, at) => at === index % items.length)
    const user = new World()
    const env = { PLANTS_STORE: address, PLANTS_TIMEOUT: '50ms' }
    const others = ['config list', 'config get store', 'doctor', 'stores list', 'auth status', 'tokens list', 'list']
    for (const line of ['get 1', ...some(...others)]) await user.run(`${line} --verbose`, { env })
    await user.run(['__complete', '--', '--store', ''], { env })
    await user.run('doctor --output json', { env, terminals: ['stdout', 'stderr'] })
    const adding = ['get 1 --store A', 'get 1 --store=A', 'stores add x A', 'stores init A', 'config set store A']
    for (const line of some(...adding, 'stores use A', 'stores remove A', 'list A', 'A')) {
      const words = line.split(' ').map((word) => word.replace('A', () => address))
      expect((await user.run([...words, '--verbose', '--timeout', '50ms'])).code).not.toBe(0)
    }
    expect(user.saved).toBe(undefined)
    const asking = ['get 1', 'config list', 'config get stores.team.address', 'stores list', 'doctor', 'auth status']
    const changing = ['stores add team ./x.db', 'stores use team', 'config set stores.team.timeout 1s']
    for (const line of some(...asking, ...changing, 'stores remove team')) {
      user.save({ store: 'team', stores: { team: { address } }, timeout: '50ms' })
      await user.run(`${line} --verbose`)
    }
    await user.run('stores list', { terminals: ['stdout'] })
    await user.run(['__complete', '--', 'stores', 'use', ''])
    user.save({ store: address, timeout: '50ms' })
    for (const line of some('get 1', 'config get store', 'stores list', 'doctor')) await user.run(`${line} --verbose`)
  },
)

test.each([
  ['postgres://u%3As3cretPw@h/db', 'postgres://u:***@h/db', 'postgres://u:***@h:5432/db'],
  ['postgres://u;s3cretPw@h/db', 'postgres://u:***@h/db', 'postgres://u:***@h:5432/db'],
  ['https://user:s3cret@h.example', 'https://***@h.example'],
])('config and stores show *** for a part that may be a password: %s', async (address, shown, removed = shown) => {
  const user = new World()
  const env = { PLANTS_STORE: address }
  expect(await user.run('config get store', { env })).toEqual(printed(`${shown}\n`))
  await user.run('config list', { env })
  user.save({ stores: { team: { address } } })
  expect(await user.run('config get stores.team.address')).toEqual(printed(`${shown}\n`))
  await user.run('stores list')
  expect((await user.run('stores remove team')).out).toContain(`"address":"${removed}"`)
})

test('what holds no password is shown as it is', async () => {
  const user = new World()
  for (const address of linesOf(`
    ./a:b@c.db
    /srv/plants@1/a:b@c.db
    ~/x@y.db
    me@home.db
    sqlite:me@home.db
    ./key=1/what?.db
    data/plants#1.db
    C:\\x
    https://key:4010/v1
    unix:/run/secret:/v1
    unix:/run/plants@1.sock
    unix:data@1.sock:/v1
    postgres://me@db.example.com:5432/plants?sslmode=verify-full
    postgres://me@key:5432/plants?sslmode=verify-full&sslkey=/k.pem&target_session_attrs=primary&channel_binding=prefer`))
    expect(await user.run('config get store', { env: { PLANTS_STORE: address } })).toEqual(printed(`${address}\n`))
})

test.each([
  [' ./a.db\n', './a.db\n'],
  [' \n', 'local\n'],
])('PLANTS_STORE may have spaces around it: %j', async (text, shown) => {
  expect(await new World().run('config get store', { env: { PLANTS_STORE: text } })).toEqual(printed(shown))
})
