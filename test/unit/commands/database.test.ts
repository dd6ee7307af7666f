import { beforeEach, expect, test } from 'vitest'
import { passwordFile } from '../../../src/stores/common/address.js'
import { refusal, World } from '../../helpers/world.js'

// What commands print is in transcripts/database.txt.

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
])('a password in an address is rejected as an argument: %s of %s', async (place, line) => {
  user.save({ stores: { db: { address: '/x.db' } } })
  const { saved } = user
  expect(await user.run(`${line} postgres://ann:s3cret@h1/garden`)).toEqual(
    refusal(
      `${place} contains a password, which other users could see in the list of processes`,
      `Remove it, and set PGPASSWORD, or write it to ${passwordFile}`,
    ),
  )
  expect(await user.run(`${line} postgresql://h1/garden?password=s3cret`)).toMatchObject({
    code: 2,
    err: expect.not.stringContaining('s3cret'),
  })
  expect(user.saved).toEqual(saved)
})

test.each([
  ['postgres://h1/x', true],
  ['postgres://h1/x?sslmode=verify-full&sslrootcert=system', false],
  ['postgres://localhost,127.0.0.1,[::1]/x', false],
])(
  'a warning says that an attacker could impersonate the database: %s is %s',
  async (address, isWarned) => {
    const warning =
      /^plants: The connection to \S+ is not safe from an attacker on the network, .*\. Set sslmode=verify-full in its address\n/m
    for (const line of [
      `stores add db ${address}`,
      'stores use db',
      `config set store ${address}`,
      `stores add db ${address} --replace`,
    ]) {
      const { code, err } = await user.run(line)
      expect({ line, code, isWarned: warning.test(err) }).toEqual({ line, code: 0, isWarned })
    }
  },
)
