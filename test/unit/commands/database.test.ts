import { expect, test } from 'vitest'
import { World } from '../../helpers/world.js'

// What commands say about databases is in transcripts/database.txt.

test.each(['get 1 --store', 'stores add mine', 'stores use', 'stores init', 'config set store'])(
  'a password in an address is rejected as an argument, and not repeated: %s',
  async (line) => {
    const user = new World({ stores: { db: { address: '/x.db' } } })
    const { saved } = user
    for (const address of ['postgres://ann:s3cret@h1/x', 'postgresql://h1/x?password=s3cret']) {
      const { code, out, err } = await user.run(`${line} ${address}`)
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err).not.toContain('s3cret')
      if (address.includes('@')) expect(err).toContain('PGPASSWORD')
    }
    expect(user.saved).toEqual(saved)
  },
)

test.each([
  ['postgres://h1/x', true],
  ['postgres://h1/x?sslmode=verify-full&sslrootcert=system', false],
  ['postgres://localhost,127.0.0.1,[::1]/x', false],
])('who saves %s is warned of an attacker on the network: %s', async (address, isWarned) => {
  const user = new World()
  for (const line of [`stores add db ${address}`, 'stores use db', `config set store ${address}`]) {
    const { code, err } = await user.run(line)
    expect({ line, code, isWarned: err.includes('sslmode=verify-full') }).toEqual({
      ...{ line, code: 0, isWarned },
    })
  }
})
