import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { PlantsError } from '../../../../src/errors.js'
import type { AddressContext, PostgresAddress } from '../../../../src/stores/address.js'
import { parseAddress } from '../../../../src/stores/kinds.js'
import { toReadWrite } from '../../../../src/stores/postgres/address.js'
import { check, fc } from '../../../helpers/expect/arbitraries.js'
import { isWindows } from '../../../helpers/sandbox/sandbox.js'
import { createAddressContext } from '../../../helpers/sandbox/store.js'

const garden = 'postgres://ann@h1:5432/garden'

async function parse(
  address: string,
  options: Partial<AddressContext> = {},
): Promise<PostgresAddress> {
  const context = createAddressContext({
    resolvePath: (path) => resolve('/home/ann', path),
    ...options,
  })
  const found = await parseAddress(address, '--store', context)
  if (found.scheme !== 'postgres') throw new Error('Only databases are expected here')
  return found
}

test('the address of a database is parsed into its parts', async () => {
  expect(await parse('postgres://ann@h1/garden')).toEqual({
    ...{ scheme: 'postgres', name: 'postgres://h1:5432/garden', href: garden },
    ...{ hosts: [{ host: 'h1', port: 5432 }], user: 'ann', password: undefined },
    ...{ database: 'garden', sslmode: 'prefer', sslrootcert: undefined },
    ...{
      sslcert: undefined,
      sslkey: undefined,
      maxConnections: 4,
      targetSessionAttrs: 'read-write',
    },
  })
})

test.skipIf(isWindows)(
  'an address takes what it lacks from the variables of libpq, then from the defaults (needs paths with /)',
  async () => {
    const host = existsSync('/var/run/postgresql') ? '/var/run/postgresql' : 'localhost'
    const preset = `postgres://gardener@${encodeURIComponent(host)}:5432/gardener`
    expect(await parse('postgresql://')).toMatchObject({ href: preset, hosts: [{ host }] })
    const env = {
      ...{ PGHOST: 'h1,/run/pg', PGPORT: '6432', PGUSER: 'bob', PGDATABASE: 'beds' },
      ...{ PGSSLMODE: 'verify-full', PGSSLROOTCERT: 'ca.pem' },
      ...{ PGSSLCERT: 'own.pem', PGSSLKEY: 'own.key', PGTARGETSESSIONATTRS: 'any' },
    }
    const login = 'postgres://bob@h1:6432,%2Frun%2Fpg:6432/beds'
    const pair = { sslcert: '/home/ann/own.pem', sslkey: '/home/ann/own.key' }
    const options = { ...pair, sslmode: 'verify-full', sslrootcert: '/home/ann/ca.pem' }
    const query = Object.entries({ ...options, target_session_attrs: 'any' })
    const href = `${login}?${query.map((entry) => entry.join('=')).join('&')}`
    const read = { href, ...options, targetSessionAttrs: 'any' }
    expect(await parse('postgres://', { env })).toMatchObject(read)
    const own = `${garden}?sslmode=prefer`
    const mode = { PGSSLMODE: 'verify-full' }
    expect(await parse(own, { env: mode })).toMatchObject({ href: own, sslmode: 'prefer' })
  },
)

test.skipIf(isWindows).each([
  { address: 'POSTGRESQL://ann@H1/garden', complete: garden },
  {
    address: 'postgres://ann@[::1]:5433,[FE80::1]/garden',
    complete: 'postgres://ann@[::1]:5433,[fe80::1]:5432/garden',
  },
  {
    address: 'postgres:///garden?host=/tmp&user=ann&port=5433',
    complete: 'postgres://ann@%2Ftmp:5433/garden',
  },
  {
    address: 'postgres://ann@ignored:1/ignored?dbname=garden&host=h1,::1&port=5433',
    complete: 'postgres://ann@h1:5433,[::1]:5433/garden',
  },
  {
    address: 'postgres://a%40b%3Ac@h1/my%20garden%2F2#3',
    complete: 'postgres://a%40b%3Ac@h1:5432/my%20garden%2F2%233',
  },
  {
    address: 'postgres://ann@h1/garden?sslmode=prefer&max=4',
    complete: `${garden}?max=4&sslmode=prefer`,
  },
  {
    address: 'postgres://ann@h1/garden?sslrootcert=ca.pem&max=9&sslmode=verify-ca',
    complete: `${garden}?max=9&sslmode=verify-ca&sslrootcert=/home/ann/ca.pem`,
  },
])(
  'the address $address is completed to $complete (needs paths with /)',
  async ({ address, complete }) => {
    const found = await parse(address)
    expect(await parse(found.href)).toEqual(found) // as it is saved
    const login = complete.replace(/\?.*/, '')
    expect([found.href, found.name]).toEqual([complete, login.replace(/[^/]*@/, '')])
  },
)

test.each([
  { address: 'postgres://h1:x/g', why: 'is not a valid address' },
  { address: 'postgres://h1:0/g', why: 'has a port that is not from 1 to 65535' },
  { address: 'postgres://h1,h2/g?port=1,2,3', why: 'is not a valid address' },
  { address: 'postgres://h1/g?requirepeer=none', why: 'parameter that is not supported' },
  { address: 'postgres://h1/g?password=s3cret', why: 'parameter that is not supported' },
  { address: 'postgres://h1/g?max=-1', why: 'max must be' },
  { address: 'postgres://h1/g?max=abc', why: 'max must be' },
  { address: 'postgres://h1/g?max=1.5', why: 'max must be' },
  { address: 'postgres://h1/g?sslmode=on', why: 'sslmode must be one of' },
  { address: 'postgres://h1/g?target_session_attrs=', why: 'must be read-write or any' },
  { address: 'postgres://h1/g?target_session_attrs=standby', why: 'must be read-write or any' },
  { address: 'postgres://', why: 'has no user' },
])('the address $address is rejected: $why', async ({ address, why }) => {
  const options = why.includes('user') ? { findUserName: () => undefined } : {}
  const message = expect.stringContaining(why)
  await expect(parse(address, options)).rejects.toMatchObject({ kind: 'usage', message })
})

test.each([
  { variable: 'PGPORT', text: 'abc', message: 'PGPORT has a port that is not from 1 to 65535' },
  { variable: 'PGHOST', text: 'a b', message: 'PGHOST is not a valid address of a database' },
])('an address that $variable completes is rejected with its name', async (row) => {
  const rejected = parse('postgres:///g', { env: { [row.variable]: row.text } })
  await expect(rejected).rejects.toMatchObject({ kind: 'usage', message: row.message })
})

test('the hint for a wrong sslmode names its variable, too', async () => {
  const rejected = parse('postgres://h1/g', { env: { PGSSLMODE: 'on' } })
  const hint = 'Correct it in the address, or in PGSSLMODE'
  await expect(rejected).rejects.toMatchObject({ kind: 'usage', hint })
})

test('the address takes precedence over PGTARGETSESSIONATTRS', async () => {
  const env = { PGTARGETSESSIONATTRS: 'any' }
  const own = `${garden}?target_session_attrs=read-write`
  const readWrite = { href: own, targetSessionAttrs: 'read-write' }
  expect(await parse(own, { env })).toMatchObject(readWrite)
  const rejected = parse(garden, { env: { PGTARGETSESSIONATTRS: 'primary' } })
  await expect(rejected).rejects.toMatchObject({
    kind: 'usage',
    message: 'target_session_attrs must be read-write or any',
    hint: 'Correct it in the address, or in PGTARGETSESSIONATTRS',
  })
})

test('an import uses the primary, whichever servers the address allows', async () => {
  for (const parameter of ['', '&target_session_attrs=any']) {
    const { targetSessionAttrs } = toReadWrite(await parse(`${garden}?max=9${parameter}`))
    expect(targetSessionAttrs).toBe('read-write')
  }
})

test('the host is verified if all authorities of the system are trusted', async () => {
  const address = 'postgres://h1/g?sslrootcert=system&sslmode=require'
  expect(await parse(address)).toMatchObject({ sslmode: 'verify-full' })
})

test('an address is shown without its password, which is redacted', async () => {
  const secrets = new Set<string>()
  const found = await parse('postgres://ann:s3%40cret@h1/garden', { secrets })
  expect(found).toMatchObject({ href: garden, password: 's3@cret' })
  expect([...secrets]).toEqual(['s3@cret', 's3%40cret'])
})

test('an address never shows a password, whatever is wrong with it', async () => {
  const part = fc.stringMatching(/^[\w@:/?#&=%.,[\]-]{0,8}$/)
  await check(200, [part, part, part, fc.boolean()], async (before, after, rest, isArgument) => {
    const address = `postgres://ann:${before}s3cret${after}@${rest}`
    const shown = await parse(address, { isArgument }).then(
      ({ name, href }) => [name, href],
      (error: unknown) => [String(error), error instanceof PlantsError ? error.hint : ''],
    )
    expect(shown.join(' ')).not.toContain('s3cret')
  })
})
