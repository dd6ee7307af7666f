import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import {
  type AddressContext,
  type PostgresAddress,
  sslModes,
} from '../../../../src/stores/common/address.js'
import { parseAddress } from '../../../../src/stores/registry.js'
import { fc } from '../../../helpers/fast-check.js'
import { rounds } from '../../../helpers/rounds.js'
import { place } from '../../../helpers/store.js'
import { isWindows } from '../../../helpers/windows.js'

const garden = 'postgres://ann@h1:5432/garden'
const example =
  'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full, with % as %25 and @ as %40'

async function parse(
  address: string,
  options: Partial<AddressContext> = {},
): Promise<PostgresAddress> {
  const context = place({ resolvePath: (path) => resolve('/home/ann', path), ...options })
  const found = await parseAddress(address, '--store', context)
  if (found.scheme !== 'postgres') throw new Error('Only databases are expected here')
  return found
}

/** The message and the hint with which an address is rejected. */
async function rejection(
  address: string,
  options: Partial<AddressContext> = {},
): Promise<(string | undefined)[]> {
  const error: unknown = await parse(address, options).catch((reason: unknown) => reason)
  if (!(error instanceof PlantsError) || error.kind !== 'usage') throw error
  return [error.message, error.hint]
}

describe('the address of a database', () => {
  test.skipIf(isWindows)(
    'takes what it lacks from the variables of libpq, then from the defaults (needs paths with /)',
    async () => {
      expect(await parse('postgres://ann@h1/garden')).toEqual({
        ...{
          scheme: 'postgres',
          name: 'postgres://h1:5432/garden',
          href: garden,
          hosts: [{ host: 'h1', port: 5432 }],
        },
        ...{
          user: 'ann',
          password: undefined,
          database: 'garden',
          sslmode: 'prefer',
          sslrootcert: undefined,
        },
        ...{ sslcert: undefined, sslkey: undefined, max: 4 },
      })
      const host = existsSync('/var/run/postgresql') ? '/var/run/postgresql' : 'localhost'
      const preset = `postgres://gardener@${encodeURIComponent(host)}:5432/gardener`
      expect(await parse('postgresql://')).toMatchObject({
        href: preset,
        hosts: [{ host, port: 5432 }],
      })
      const env = {
        ...{
          PGHOST: 'h1,/run/pg',
          PGPORT: '6432',
          PGUSER: 'bob',
          PGDATABASE: 'beds',
        },
        ...{
          PGSSLMODE: 'verify-full',
          PGSSLROOTCERT: 'ca.pem',
          PGSSLCERT: 'own.pem',
          PGSSLKEY: 'own.key',
        },
      }
      const [sslrootcert, sslcert, sslkey] = [
        '/home/ann/ca.pem',
        '/home/ann/own.pem',
        '/home/ann/own.key',
      ]
      const login = 'postgres://bob@h1:6432,%2Frun%2Fpg:6432/beds'
      const options = `sslcert=${sslcert}&sslkey=${sslkey}&sslmode=verify-full&sslrootcert=${sslrootcert}`
      const read = {
        href: `${login}?${options}`,
        sslmode: 'verify-full',
        sslrootcert,
        sslcert,
        sslkey,
      }
      expect(await parse('postgres://', { env })).toMatchObject(read)
      const own = `${garden}?sslmode=prefer`
      const mode = { PGSSLMODE: 'verify-full' }
      expect(await parse(own, { env: mode })).toMatchObject({ href: own, sslmode: 'prefer' })
    },
  )

  const others = 'max=9&sslmode=verify-ca'

  test.skipIf(isWindows).each([
    ['POSTGRESQL://ann@H1/garden', garden],
    [
      'postgres://ann@[::1]:5433,[FE80::1]/garden',
      'postgres://ann@[::1]:5433,[fe80::1]:5432/garden',
    ],
    ['postgres:///garden?host=/tmp&user=ann&port=5433', 'postgres://ann@%2Ftmp:5433/garden'],
    [
      'postgres://ann@ignored:1/ignored?dbname=garden&host=h1,::1&port=5433',
      'postgres://ann@h1:5433,[::1]:5433/garden',
    ],
    [
      'postgres://a%40b%3Ac@h1/my%20garden%2F2#3',
      'postgres://a%40b%3Ac@h1:5432/my%20garden%2F2%233',
    ],
    ['postgres://ann@h1/garden?sslmode=prefer&max=4', `${garden}?max=4&sslmode=prefer`],
    [
      `postgres://ann@h1/garden?sslrootcert=ca.pem&${others}`,
      `${garden}?${others}&sslrootcert=/home/ann/ca.pem`,
    ],
  ])('%s is %s (needs paths with /)', async (address, complete) => {
    const found = await parse(address)
    expect(await parse(found.href)).toEqual(found) // as it is saved
    const { href, name } = found
    const login = complete.replace(/\?.*/, '')
    expect([href, name]).toEqual([complete, login.replace(/[^/]*@/, '')])
  })

  const not = 'is not a valid address of a database'
  const unsupported = 'contains a parameter that is not supported'
  const ofNames = expect.stringContaining('The parameters are: host, port')

  test.each<[address: string, why: string, hint?: string]>([
    ['postgres://h1:x/g', not],
    ['postgres://h1:0/g', not],
    ['postgres://h1,h2/g?port=1,2,3', not],
    ['postgres://h1/g?requirepeer=none', unsupported, ofNames],
    ['postgres://h1/g?connect_timeout=5', unsupported, ofNames],
    ['postgres://h1/g?password=s3cret', unsupported, ofNames],
  ])('%s is rejected', async (address, why, hint = example) => {
    expect(await rejection(address)).toEqual([`--store ${why}`, hint])
  })

  test.each(['-1', '0', 'abc', ''])('is rejected with max=%s', async (max) => {
    const why = 'max must be at least 1'
    expect(await rejection(`postgres://h1/g?max=${max}`)).toEqual([why, example])
  })

  test('is rejected with an sslmode that there is not', async () => {
    const why = `sslmode must be one of ${sslModes.join(', ')}`
    expect(await rejection('postgres://h1/g?sslmode=on')).toEqual([why, example])
  })

  test('verifies the host where all authorities of the system are trusted', async () => {
    const address = 'postgres://h1/g?sslrootcert=system&sslmode=require'
    expect(await parse(address)).toMatchObject({ sslmode: 'verify-full' })
  })

  test('needs a user', async () => {
    expect(await rejection('postgres://', { userName: () => undefined })).toEqual([
      '--store has no user',
      example,
    ])
  })

  test('is shown without its password', async () => {
    const secrets = new Set<string>()
    const address = 'postgres://ann:s3%40cret@h1/garden'
    const { href, password } = await parse(address, { secrets })
    const hidden = ['s3@cret', 's3%40cret']
    expect([href, password, [...secrets]]).toEqual([garden, 's3@cret', hidden])
  })

  test('never shows a password, whatever is wrong with it', async () => {
    const part = fc.stringMatching(/^[\w@:/?#&=%.,[\]-]{0,8}$/)
    await fc.assert(
      fc.asyncProperty(part, part, part, fc.boolean(), async (before, after, rest, isArgument) => {
        const shown = await parse(`postgres://ann:${before}s3cret${after}@${rest}`, {
          isArgument,
        }).then(
          ({ name, href }) => [name, href],
          (error: unknown) => [String(error), error instanceof PlantsError ? error.hint : ''],
        )
        expect(shown.join(' ')).not.toContain('s3cret')
      }),
      { numRuns: rounds(1000) },
    )
  })
})
