import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import {
  type AddressContext,
  type PostgresAddress,
  sessionAttributes,
  sslModes,
} from '../../../../src/stores/common/address.js'
import { parseAddress } from '../../../../src/stores/registry.js'
import { fc } from '../../../helpers/fast-check.js'
import { rounds } from '../../../helpers/rounds.js'
import { place } from '../../../helpers/store.js'

const garden = 'postgres://ann@db.example.com:5432/garden'
const usual = {
  ...{
    scheme: 'postgres',
    sslmode: 'prefer',
    sslrootcert: undefined,
    sslcert: undefined,
    sslkey: undefined,
    password: undefined,
  },
  ...{ targetSessionAttrs: 'read-write', applicationName: 'plants', connectTimeout: 5000, max: 4 },
}
const example = 'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full'
const usualHost = existsSync('/var/run/postgresql') ? '/var/run/postgresql' : 'localhost'

async function parse(address: string, options: Partial<AddressContext> = {}): Promise<PostgresAddress> {
  const found = await parseAddress(
    address,
    '--store',
    place({ resolvePath: (path) => resolve('/home/ann', path), ...options }),
  )
  if (found.scheme !== 'postgres') throw new Error('Only databases are expected here')
  return found
}

async function refusal(
  address: string,
  options: Partial<AddressContext> = {},
): Promise<[message: string, hint: string | undefined]> {
  const error: unknown = await parse(address, options).then(
    ({ name }) => new Error(`${name} is not refused`),
    (reason: unknown) => reason,
  )
  if (!(error instanceof PlantsError) || error.type !== 'malformed') throw error
  return [error.message, error.hint]
}

describe('the address of a database', () => {
  test('has what libpq and we have by default', async () => {
    expect(await parse('postgres://ann@db.example.com/garden')).toEqual({
      ...usual,
      ...{
        name: garden,
        login: garden,
        hosts: [{ host: 'db.example.com', port: 5432 }],
        user: 'ann',
        database: 'garden',
      },
    })
    const name = `postgres://gardener@${encodeURIComponent(usualHost)}:5432/gardener`
    expect(await parse('postgresql://')).toEqual({
      ...usual,
      ...{ name, login: name, hosts: [{ host: usualHost, port: 5432 }], user: 'gardener', database: 'gardener' },
    })
  })

  test.each([
    ['POSTGRESQL://ann@DB.example.com/garden', garden],
    ['postgres://ann@h1,h2:5433/garden', 'postgres://ann@h1:5432,h2:5433/garden'],
    ['postgres://ann@[::1]:5433,[FE80::1]/garden', 'postgres://ann@[::1]:5433,[fe80::1]:5432/garden'],
    ['postgres://ann@%2Fvar%2Frun%2Fpostgresql/garden', 'postgres://ann@%2Fvar%2Frun%2Fpostgresql:5432/garden'],
    ['postgres:///garden?host=/tmp/&user=ann&port=5433', 'postgres://ann@%2Ftmp:5433/garden'],
    ['postgres://ann@ignored:1/garden?host=h1,::1&port=5433', 'postgres://ann@h1:5433,[::1]:5433/garden'],
    ['postgres://ann@h1/ignored?dbname=garden', 'postgres://ann@h1:5432/garden'],
    ['postgres://a%40b%3Ac@h1/my%20garden%2F2#3', 'postgres://a%40b%3Ac@h1:5432/my%20garden%2F2%233'],
    ['postgres://ann@h1/b/c', 'postgres://ann@h1:5432/b%2Fc'],
    ['postgres://ann@h1/garden?max=4&connect_timeout=5&sslmode=prefer', 'postgres://ann@h1:5432/garden'],
    [
      'postgres://ann@h1/garden?target_session_attrs=any&sslrootcert=ca.pem&max=9&application_name=my%20app&connect_timeout=10&sslmode=verify-ca',
      'postgres://ann@h1:5432/garden?application_name=my%20app&connect_timeout=10&max=9&sslmode=verify-ca&sslrootcert=/home/ann/ca.pem&target_session_attrs=any',
    ],
    [
      'postgres://ann@h1/garden?sslrootcert=system',
      'postgres://ann@h1:5432/garden?sslmode=verify-full&sslrootcert=system',
    ],
  ])('%s is %s', async (address, name) => {
    const found = await parse(address)
    expect([found.name, found.login]).toEqual([name, name.replace(/\?.*/, '')])
    expect(await parse(name)).toEqual(found)
  })

  test('takes from the variables of libpq what it leaves open', async () => {
    const env = {
      ...{
        PGHOST: 'h1,/run/pg',
        PGPORT: '6432',
        PGUSER: 'bob',
        PGDATABASE: 'beds',
        PGAPPNAME: 'app',
        PGCONNECT_TIMEOUT: '7',
      },
      ...{
        PGSSLMODE: 'verify-full',
        PGSSLROOTCERT: 'ca.pem',
        PGSSLCERT: 'own.pem',
        PGSSLKEY: 'own.key',
        PGTARGETSESSIONATTRS: 'any',
      },
    }
    const parameters =
      'application_name=app&connect_timeout=7&sslcert=/home/ann/own.pem&sslkey=/home/ann/own.key&sslmode=verify-full&sslrootcert=/home/ann/ca.pem&target_session_attrs=any'
    const login = 'postgres://bob@h1:6432,%2Frun%2Fpg:6432/beds'
    expect(await parse('postgres://', { env })).toEqual({
      ...{
        scheme: 'postgres',
        name: `${login}?${parameters}`,
        login,
        user: 'bob',
        database: 'beds',
        password: undefined,
        max: 4,
      },
      ...{
        hosts: [
          { host: 'h1', port: 6432 },
          { host: '/run/pg', port: 6432 },
        ],
        sslmode: 'verify-full',
      },
      ...{ sslrootcert: '/home/ann/ca.pem', sslcert: '/home/ann/own.pem', sslkey: '/home/ann/own.key' },
      ...{ targetSessionAttrs: 'any', applicationName: 'app', connectTimeout: 7000 },
    })
    expect((await parse(`${garden}?sslmode=prefer`, { env: { PGSSLMODE: 'require' } })).name).toBe(
      `${garden}?sslmode=prefer`,
    )
  })

  test.each([
    ['postgres:garden', 'is not a valid address of a database', example],
    [
      'postgres://h1:x/garden',
      'has an invalid host',
      'A port is a number, and an IPv6 address is in brackets: [::1]:5432',
    ],
    [
      'postgres://::1/garden',
      'has an invalid host',
      'A port is a number, and an IPv6 address is in brackets: [::1]:5432',
    ],
    ['postgres://h1:0/garden', 'has a port that is not a number from 1 to 65535', example],
    ['postgres://h1,,h2/garden', 'has an invalid host', example],
    [
      'postgres://h1,h2/garden?port=1,2,3',
      'names 2 hosts, but 3 ports',
      'Name one port for all hosts, or one for each',
    ],
    ['postgres://h%2F1/garden', 'has an invalid host', example],
    ...['garden?host=%00', '%ff'].map((rest): [string, string, string] => [
      `postgres://h1/${rest}`,
      'is not percent-encoded correctly',
      'Write % as %25, and percent-encode other characters as UTF-8',
    ]),
    ['postgres://h1/garden?max', 'contains the parameter max without a value', example],
    ['postgres://h1/garden?max=', 'contains the parameter max without a value', example],
    [
      'postgres://h1/g?sslmod=require',
      'contains a parameter "sslmod" that is not supported',
      expect.stringContaining('The parameters are: appl'),
    ],
    ...['require_auth', 'requirepeer', 'channel_binding'].map((name): [string, string, string] => [
      `postgres://h1/g?${name}=none`,
      `contains a parameter "${name}" that is not supported`,
      expect.stringContaining('The parameters are: appl'),
    ]),
    [
      'postgres://h1/g?max=101',
      'contains the parameter max, which must be a whole number from 1 to 100, but was "101"',
      example,
    ],
    [
      'postgres://h1/g?sslmode=on',
      'contains the parameter sslmode, which must be one of disable, prefer, require, verify-ca, verify-full, but was "on"',
      example,
    ],
    [
      'postgres://h1/g?connect_timeout=0',
      'contains the parameter connect_timeout, which must be a whole number of seconds from 1 to 999, but was "0"',
      example,
    ],
    [
      'postgres://h1/g?application_name=%C3%A4',
      'contains the parameter application_name, which must be 1 to 63 visible ASCII characters, but was "ä"',
      example,
    ],
    [
      'postgres://h1/g?sslrootcert=system&sslmode=require',
      'combines sslrootcert=system with sslmode=require',
      'Use sslmode=verify-full',
    ],
    [
      `postgres:///g?host=/${'x'.repeat(100)}`,
      'has a socket path that is longer than 107 bytes',
      'Sockets need shorter ones',
    ],
  ])('%s is refused', async (address, why, hint) => {
    expect(await refusal(address)).toEqual([`--store ${why}`, hint])
  })

  test('is refused by the name of the variable that is wrong', async () => {
    const rule = 'one of any, read-write, primary'
    expect(await refusal(garden, { env: { PGTARGETSESSIONATTRS: 'rw' } })).toEqual([
      `PGTARGETSESSIONATTRS must be ${rule}, but was "rw"`,
      example,
    ])
    const hint = 'Write postgres://USER@HOST/DATABASE, or set PGUSER'
    expect(await refusal('postgres://', { userName: () => undefined })).toEqual([
      '--store has no user, and this process has no user name',
      hint,
    ])
  })

  test('is not used without a protection that a variable asks for', async () => {
    const hint = 'Unset it. To verify the server, add to the address: sslmode=verify-full'
    const asked = { PGREQUIREAUTH: 'scram-sha-256', PGREQUIREPEER: 'postgres', PGCHANNELBINDING: 'require' }
    for (const [name, value] of Object.entries(asked)) {
      expect(await refusal(garden, { env: { [name]: value } })).toEqual([
        `${name} is set, but it is not supported`,
        hint,
      ])
      expect((await parse(garden, { env: { [name]: '' } })).name).toBe(garden)
    }
    expect((await parse(garden, { env: { PGCHANNELBINDING: 'prefer' } })).name).toBe(garden)
    const rule = 'one of disable, prefer, require, verify-ca, verify-full'
    expect(await refusal(garden, { env: { PGSSLMODE: 'allow' } })).toEqual([
      `PGSSLMODE must be ${rule}, but was "allow"`,
      example,
    ])
  })

  test('keeps a password out of its name, and hands it over to be hidden', async () => {
    for (const address of ['postgres://ann:s3%40cret@h1/garden', 'postgres://ann@h1/garden?password=s3%40cret']) {
      const secrets = new Set<string>()
      const { name, login, password } = await parse(address, { secrets })
      const shown = 'postgres://ann@h1:5432/garden'
      expect({ name, login, password, secrets: [...secrets] }).toEqual({
        name: shown,
        login: shown,
        password: 's3@cret',
        secrets: ['s3@cret', 's3%40cret'],
      })
    }
  })

  test('must not hold a password where others can see it', async () => {
    for (const address of ['postgres://ann:s3cret@h1/garden', 'postgres://ann@h1/garden?password=s3cret']) {
      expect(await refusal(address, { isArgument: true })).toEqual([
        '--store contains a password, which other users could see in the list of processes',
        'Remove it, and set PGPASSWORD, or save it with: plants auth login',
      ])
    }
  })

  test('is the same when its name is read again', async () => {
    await fc.assert(
      fc.asyncProperty(anyAddress(), anyVariables(), async (address, env) => {
        const found = await parse(address, { env })
        expect(await parse(found.name, { env })).toEqual(found)
        expect(await parse(found.login, { env })).toMatchObject({
          login: found.login,
          hosts: found.hosts,
          user: found.user,
        })
      }),
      { numRuns: rounds(300) },
    )
  })

  test('never shows a password, however it is wrong', async () => {
    const part = fc.stringMatching(/^[\w@:/?#&=%.,[\]-]{0,8}$/)
    await fc.assert(
      fc.asyncProperty(part, part, part, fc.boolean(), async (before, after, rest, isArgument) => {
        const address = `postgres://ann:${before}s3cret${after}@${rest}`
        const shown = await parse(address, { isArgument }).then(
          ({ name, login }) => [name, login],
          (error: unknown) => [String(error), error instanceof PlantsError ? error.hint : ''],
        )
        expect(shown.join(' ')).not.toContain('s3cret')
      }),
      { numRuns: rounds(1000) },
    )
  })
})

/** An address as people may write it. */
function anyAddress(): fc.Arbitrary<string> {
  const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).filter((text) => !text.includes('\0'))
  const encoded = word.map(encodeURIComponent)
  const name = fc.constantFrom('h1', 'DB.example.com', '[::1]', '[fe80::2]', '127.0.0.1', '%2Ftmp', '%2Frun%2Fa%20b')
  const port = fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined })
  const host = fc.tuple(name, port).map(([text, number]) => (number === undefined ? text : `${text}:${number}`))
  const hosts = fc.array(host, { minLength: 0, maxLength: 3 }).map((all) => all.join(','))
  const parameters = fc.record(
    {
      ...{ sslmode: fc.constantFrom(...sslModes), target_session_attrs: fc.constantFrom(...sessionAttributes) },
      ...{
        max: fc.integer({ min: 1, max: 100 }).map(String),
        connect_timeout: fc.integer({ min: 1, max: 999 }).map(String),
      },
      ...{
        sslrootcert: fc.constantFrom('ca.pem', '/a%20b'),
        sslcert: encoded.map((text) => `/${text}`),
        sslkey: fc.constant('own.key'),
      },
      ...{
        application_name: fc.stringMatching(/^[\x20-\x7e]{1,63}$/).map(encodeURIComponent),
        user: encoded,
        dbname: encoded,
      },
    },
    { requiredKeys: [] },
  )
  const query = parameters.map((all) =>
    Object.entries(all)
      .map(([key, value]) => `${key}=${value}`)
      .join('&'),
  )
  return fc
    .tuple(fc.option(encoded), hosts, fc.option(encoded), query)
    .map(
      ([user, all, database, rest]) =>
        `postgres://${user === null ? '' : `${user}@`}${all}/${database ?? ''}${rest && `?${rest}`}`,
    )
}

function anyVariables(): fc.Arbitrary<Record<string, string>> {
  return fc.record(
    {
      ...{
        PGHOST: fc.constantFrom('h3', '/tmp', '::1'),
        PGPORT: fc.constantFrom('1', '5432'),
        PGUSER: fc.constant('bob'),
      },
      ...{
        PGDATABASE: fc.constant('beds'),
        PGSSLMODE: fc.constantFrom(...sslModes),
        PGAPPNAME: fc.constantFrom('app', 'plants'),
      },
      ...{
        PGSSLROOTCERT: fc.constant('root.pem'),
        PGSSLCERT: fc.constant('own.pem'),
        PGSSLKEY: fc.constant('own.key'),
      },
      ...{ PGTARGETSESSIONATTRS: fc.constantFrom(...sessionAttributes), PGCONNECT_TIMEOUT: fc.constantFrom('5', '9') },
    },
    { requiredKeys: [] },
  )
}
