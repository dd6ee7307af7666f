import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import {
  type AddressContext,
  type PostgresAddress,
  sessionAttributes,
  shownAddress,
  sslModes,
} from '../../../../src/stores/common/address.js'
import { parseAddress } from '../../../../src/stores/registry.js'
import { fc } from '../../../helpers/fast-check.js'
import { rounds } from '../../../helpers/rounds.js'
import { place } from '../../../helpers/store.js'

const garden = 'postgres://ann@h1:5432/garden'
const example = 'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full'

async function parse(address: string, options: Partial<AddressContext> = {}): Promise<PostgresAddress> {
  const context = place({ resolvePath: (path) => resolve('/home/ann', path), ...options })
  const found = await parseAddress(address, '--store', context)
  if (found.scheme !== 'postgres') throw new Error('Only databases are expected here')
  return found
}

/** The message and the hint with which an address is rejected. */
async function rejection(address: string, options: Partial<AddressContext> = {}): Promise<(string | undefined)[]> {
  const error: unknown = await parse(address, options).catch((reason: unknown) => reason)
  if (!(error instanceof PlantsError) || error.type !== 'malformed') throw error
  return [error.message, error.hint]
}

describe('the address of a database', () => {
  test('takes what it lacks from the variables of libpq, then from the defaults', async () => {
    expect(await parse('postgres://ann@h1/garden')).toEqual({
      ...{ scheme: 'postgres', name: garden, login: garden, hosts: [{ host: 'h1', port: 5432 }] },
      ...{ user: 'ann', password: undefined, database: 'garden', sslmode: 'prefer', sslrootcert: undefined },
      ...{ sslcert: undefined, sslkey: undefined, max: 4, connectTimeout: 5000, targetSessionAttrs: 'read-write' },
      applicationName: 'plants',
    })
    const host = existsSync('/var/run/postgresql') ? '/var/run/postgresql' : 'localhost'
    const preset = `postgres://gardener@${encodeURIComponent(host)}:5432/gardener`
    expect(await parse('postgresql://')).toMatchObject({ name: preset, hosts: [{ host, port: 5432 }] })
    const env = {
      ...{ PGHOST: 'h1,/run/pg', PGPORT: '6432', PGUSER: 'bob', PGDATABASE: 'beds', PGAPPNAME: 'app' },
      ...{ PGCONNECT_TIMEOUT: '7', PGTARGETSESSIONATTRS: 'any', PGSSLMODE: 'verify-full' },
      ...{ PGSSLROOTCERT: 'ca.pem', PGSSLCERT: 'own.pem', PGSSLKEY: 'own.key' },
    }
    const [sslrootcert, sslcert, sslkey] = ['/home/ann/ca.pem', '/home/ann/own.pem', '/home/ann/own.key']
    const tls = `sslcert=${sslcert}&sslkey=${sslkey}&sslmode=verify-full&sslrootcert=${sslrootcert}`
    const login = 'postgres://bob@h1:6432,%2Frun%2Fpg:6432/beds'
    const name = `${login}?application_name=app&connect_timeout=7&${tls}&target_session_attrs=any`
    const read = { name, login, sslrootcert, sslcert, sslkey, connectTimeout: 7000 }
    expect(await parse('postgres://', { env })).toMatchObject(read)
    const own = `${garden}?sslmode=prefer`
    expect((await parse(own, { env: { PGSSLMODE: 'require' } })).name).toBe(own)
  })

  const others = 'application_name=my%20app&connect_timeout=10&max=9&sslmode=verify-ca'

  test.each([
    ['POSTGRESQL://ann@H1/garden', garden],
    ['postgres://ann@[::1]:5433,[FE80::1]/garden', 'postgres://ann@[::1]:5433,[fe80::1]:5432/garden'],
    ['postgres:///garden?host=/tmp/&user=ann&port=5433', 'postgres://ann@%2Ftmp:5433/garden'],
    ['postgres://ann@ignored:1/garden?host=h1,::1&port=5433', 'postgres://ann@h1:5433,[::1]:5433/garden'],
    ['postgres://ann@h1/ignored?dbname=garden', garden],
    ['postgres://a%40b%3Ac@h1/my%20garden%2F2#3', 'postgres://a%40b%3Ac@h1:5432/my%20garden%2F2%233'],
    ['postgres://ann@h1/garden?max=4&connect_timeout=5&sslmode=prefer', garden],
    [
      `postgres://ann@h1/garden?target_session_attrs=any&sslrootcert=ca.pem&${others}`,
      `${garden}?${others}&sslrootcert=/home/ann/ca.pem&target_session_attrs=any`,
    ],
    ['postgres://ann@h1/garden?sslrootcert=system', `${garden}?sslmode=verify-full&sslrootcert=system`],
  ])('%s is %s', async (address, name) => {
    const found = await parse(address)
    expect([found.name, found.login]).toEqual([name, name.replace(/\?.*/, '')])
  })

  const ofHosts = 'A port is a number, and an IPv6 address is in brackets: [::1]:5432'
  const ofEncoding = 'Write % as %25, and percent-encode other characters as UTF-8'
  const ofNames = expect.stringContaining('The parameters are: appl')
  const system = 'sslrootcert=system with sslmode'
  const ofSockets = 'Sockets need shorter ones'

  test.each<[address: string, why: string, hint?: string]>([
    ['postgres:garden', 'is not a valid address of a database'],
    ['postgres://h1:x/g', 'has an invalid host', ofHosts],
    ['postgres://h%2F1/g', 'has an invalid host'],
    ['postgres://h1:0/g', 'has a port that is not a number from 1 to 65535'],
    ['postgres://h1,h2/g?port=1,2,3', 'names 2 hosts, but 3 ports', 'Name one port for all hosts, or one for each'],
    ['postgres://h1/g?host=%00', 'is not percent-encoded correctly', ofEncoding],
    ['postgres://h1/g?max=', 'contains the parameter max without a value'],
    ['postgres://h1/g?requirepeer=none', 'contains a parameter "requirepeer" that is not supported', ofNames],
    ['postgres://h1/g?sslrootcert=system&sslmode=require', `combines ${system}=require`, 'Use sslmode=verify-full'],
    [`postgres:///g?host=/${'x'.repeat(100)}`, 'has a socket path that is longer than 107 bytes', ofSockets],
  ])('%s is rejected', async (address, why, hint = example) => {
    expect(await rejection(address)).toEqual([`--store ${why}`, hint])
  })

  test.each([
    ['max=101', 'a whole number from 1 to 100', '101'],
    ['connect_timeout=0', 'a whole number of seconds from 1 to 999', '0'],
    ['sslmode=on', `one of ${sslModes.join(', ')}`, 'on'],
    ['application_name=%C3%A4', '1 to 63 visible ASCII characters', 'ä'],
  ])('the parameter %s is rejected, which must be %s', async (parameter, rule, was) => {
    const why = `--store contains the parameter ${parameter.split('=')[0]}, which must be ${rule}, but was "${was}"`
    expect(await rejection(`postgres://h1/g?${parameter}`)).toEqual([why, example])
  })

  const ofProtection = 'Unset it. To verify the server, add to the address: sslmode=verify-full'

  test.each([
    ['PGTARGETSESSIONATTRS', 'rw', 'must be one of any, read-write, primary, but was "rw"', example],
    ['PGSSLMODE', 'allow', `must be one of ${sslModes.join(', ')}, but was "allow"`, example],
    ['PGREQUIREAUTH', 'scram-sha-256', 'is set, but it is not supported', ofProtection],
    ['PGREQUIREPEER', 'postgres', 'is set, but it is not supported', ofProtection],
    ['PGCHANNELBINDING', 'require', 'is set, but it is not supported', ofProtection],
  ])('is rejected by the name of the variable %s, which is %s', async (name, value, why, hint) => {
    expect(await rejection(garden, { env: { [name]: value } })).toEqual([`${name} ${why}`, hint])
    for (const harmless of name === 'PGCHANNELBINDING' ? ['', 'prefer'] : [''])
      expect((await parse(garden, { env: { [name]: harmless } })).name).toBe(garden)
  })

  test('needs a user', async () => {
    const hint = 'Write postgres://USER@HOST/DATABASE, or set PGUSER'
    const message = '--store has no user, and this process has no user name'
    expect(await rejection('postgres://', { userName: () => undefined })).toEqual([message, hint])
  })

  test.each(['postgres://ann:s3%40cret@h1/garden', 'postgres://ann@h1/garden?password=s3%40cret'])(
    '%s is shown without its password',
    async (address) => {
      const secrets = new Set<string>()
      const { name, login, password } = await parse(address, { secrets })
      const hidden = ['s3@cret', 's3%40cret']
      expect([name, login, password, [...secrets]]).toEqual([garden, garden, 's3@cret', hidden])
    },
  )

  test('is the same when its name is read again', async () => {
    await fc.assert(
      fc.asyncProperty(anyAddress(), anyVariables, async (address, env) => {
        const found = await parse(address, { env })
        const { login, hosts, user } = found
        expect(await parse(found.name, { env })).toEqual(found)
        expect(await parse(login, { env })).toMatchObject({ login, hosts, user })
      }),
      { numRuns: rounds(300) },
    )
  })

  test('never shows a password, whatever is wrong with it', async () => {
    const part = fc.stringMatching(/^[\w@:/?#&=%.,[\]-]{0,8}$/)
    await fc.assert(
      fc.asyncProperty(part, part, part, fc.boolean(), async (before, after, rest, isArgument) => {
        const shown = await parse(`postgres://ann:${before}s3cret${after}@${rest}`, { isArgument }).then(
          ({ name, login }) => [name, login],
          (error: unknown) => [String(error), error instanceof PlantsError ? error.hint : ''],
        )
        expect(shown.join(' ')).not.toContain('s3cret')
        const parameter = `${rest.replace(/[@?]/g, '')}?password=s3cret${after.replace(/[&@]/g, '')}`
        for (const address of [`ann:${before}s3cret${after}@${rest}`, parameter])
          expect(shownAddress(`postgres://${address}`)).not.toContain('s3cret')
      }),
      { numRuns: rounds(1000) },
    )
  })

  test.each([
    ['postgres://a%40b@[::1]:5432,%2Ftmp:5432/g%2F1?max=9&sslrootcert=/a%3Fb'],
    ['postgres://ann:s3/c@r:et?@h1/garden', 'postgres://ann:***@h1/garden'],
    ['postgres://h1,ann:s3cret/garden', 'postgres://h1,ann:***/garden'],
    ['postgres://h1/garden?p%61ssword=s3cret&max=9&s3cret', 'postgres://h1/garden?***&max=9&***'],
    ['Postgres://ann:s3\ncret@h1/garden', 'Postgres://ann:***@h1/garden'],
  ])('%j is shown without its password', (address, shown = address) => {
    expect(shownAddress(address)).toBe(shown)
  })
})

function anyAddress(): fc.Arbitrary<string> {
  const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).filter((text) => !text.includes('\0'))
  const encoded = word.map(encodeURIComponent)
  const name = fc.constantFrom('h1', 'DB.example.com', '[::1]', '[fe80::2]', '127.0.0.1', '%2Ftmp', '%2Frun%2Fa%20b')
  const port = fc.option(fc.integer({ min: 1, max: 65_535 }).map((number) => `:${number}`))
  const host = fc.tuple(name, port).map(([text, number]) => `${text}${number ?? ''}`)
  const hosts = fc.array(host, { maxLength: 3 }).map(String)
  const parameters = fc.record(
    {
      ...{ sslmode: fc.constantFrom(...sslModes), target_session_attrs: fc.constantFrom(...sessionAttributes) },
      ...{ max: fc.integer({ min: 1, max: 100 }), connect_timeout: fc.integer({ min: 1, max: 999 }) },
      ...{ sslrootcert: fc.constantFrom('ca.pem', '/a%20b'), sslcert: encoded.map((text) => `/${text}`) },
      ...{ sslkey: fc.constant('own.key'), user: encoded, dbname: encoded },
      application_name: fc.stringMatching(/^[\x20-\x7e]{1,63}$/).map(encodeURIComponent),
    },
    { requiredKeys: [] },
  )
  const query = parameters.map((all) => Object.entries(all).map(([key, value]) => `${key}=${value}`))
  return fc
    .tuple(fc.option(encoded), hosts, fc.option(encoded), query)
    .map(
      ([user, all, database, rest]) =>
        `postgres://${user === null ? '' : `${user}@`}${all}/${database ?? ''}${rest.length > 0 ? '?' : ''}${rest.join('&')}`,
    )
}

const anyVariables = fc.record(
  {
    PGHOST: fc.constantFrom('h3', '/tmp', '::1'),
    PGPORT: fc.constantFrom('1', '5432'),
    PGUSER: fc.constant('bob'),
    PGDATABASE: fc.constant('beds'),
    PGSSLMODE: fc.constantFrom(...sslModes),
    PGSSLROOTCERT: fc.constant('root.pem'),
    PGSSLCERT: fc.constant('own.pem'),
    PGTARGETSESSIONATTRS: fc.constantFrom(...sessionAttributes),
    PGCONNECT_TIMEOUT: fc.constantFrom('5', '9'),
  },
  { requiredKeys: [] },
)
