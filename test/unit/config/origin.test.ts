import { expect, test } from 'vitest'
import { shownValue } from '../../../src/config/resolve.js'
import { parseAddress } from '../../../src/stores/registry.js'
import { fc } from '../../helpers/fast-check.js'
import { rounds } from '../../helpers/rounds.js'
import { place } from '../../helpers/store.js'

test.each([
  ['postgres://ann@h1:5432,[::1]:5433/garden?max=9&sslmode=verify-full', undefined],
  ['postgres:///garden?host=/tmp', undefined],
  ['postgresql://ann:s3cret@h1/garden', 'postgresql://ann:***@h1/garden'],
  ['postgres://ann:s3/c@r:et?@h1/garden', 'postgres://ann:***@h1/garden'],
  ['postgres:ann:s3cret@h1', 'postgres:ann:***@h1'],
  ['postgres://ann:s3cret', 'postgres://ann:***'],
  ['postgres://h1,ann:s3cret/garden', 'postgres://h1,ann:***/garden'],
  ['postgres://h1/garden?password=s3cret&max=9', 'postgres://h1/garden?***&max=9'],
  ['postgres://h1/garden?p%61ssword=s3cret&s3cret', 'postgres://h1/garden?***&***'],
  ['Postgres://ann:s3\ncret@h1/garden', 'Postgres://ann:***@h1/garden'],
])('the address %j is shown without its password', (address, shown = address) => {
  expect(shownValue(address)).toBe(shown)
})

test('the address of a database is shown without its password, wherever that stands', () => {
  const part = fc.stringMatching(/^[\w@:/?#&=%.,[\]-]{0,8}$/)
  fc.assert(
    fc.property(part, part, part, (before, after, rest) => {
      const parameter = `${rest.replace(/[@?]/g, '')}?password=s3cret${after.replace(/[&@]/g, '')}`
      for (const address of [`ann:${before}s3cret${after}@${rest}`, parameter])
        expect(shownValue(`postgres://${address}`)).not.toContain('s3cret')
    }),
    { numRuns: rounds(1000) },
  )
})

test('the name of a store without a password is shown as it is', async () => {
  const { name } = await parseAddress('postgres://a%40b@[::1],%2Ftmp/g%2F1?max=9&sslrootcert=/a%3Fb', 'test', place())
  expect(shownValue(name)).toBe(name)
})
