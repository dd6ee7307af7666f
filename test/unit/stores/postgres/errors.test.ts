import pg from 'pg'
import { expect, test } from 'vitest'
import { toPlantsError } from '../../../../src/stores/postgres/errors.js'
import { buildDatabaseOptions, parseDatabaseAddress } from '../../../helpers/postgres/database.js'

// The causes of a failed connection or login, and what a person can do about each.

function explain(error: Error, parameters = ''): [message: string, hint?: string] {
  const address = parseDatabaseAddress({ url: 'postgres://db.example/garden' }, parameters)
  const options = buildDatabaseOptions({ env: {} })
  const { message, hint } = toPlantsError(error, { ...options, address })
  return hint === undefined ? [message] : [message, hint]
}

test.each([
  ['ECONNREFUSED', /: the connection was refused$/, /^Check that PostgreSQL is running there/],
  ['ENOTFOUND', /: the host is unknown$/, /^Correct the host in the address, or in PGHOST$/],
  ['ENOENT', /: its socket does not exist$/, /^Start PostgreSQL on this machine, or choose/],
  ['EACCES', /: this user may not use its socket$/, /^Use another user, or connect over TCP/],
  ['ETIMEDOUT', /: it timed out$/, /wait longer with --timeout 2m$/],
  ['EHOSTUNREACH', /: connect$/, /^Check the address and the network/],
  [
    'CERT_HAS_EXPIRED',
    /: its certificate has expired$/,
    /^Let the operator of the server renew its certificate$/,
  ],
  ['SELF_SIGNED_CERT_IN_CHAIN', /: connect$/, /set sslrootcert in the address to a file/],
  [
    'ERR_TLS_CERT_ALTNAME_INVALID',
    /: its certificate is for another host$/,
    /^Use a host in the address/,
  ],
])('a connection that fails with %s has its own reason and hint', (code, message, hint) => {
  const error = Object.assign(new Error('connect'), { code })
  expect(explain(error)).toEqual([expect.stringMatching(message), expect.stringMatching(hint)])
})

function createServerError(code: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError('reported', 0, 'error'), { code })
}

test('the hint for a missing database begins with the address', () => {
  const [, hint] = explain(createServerError('3D000'))
  expect(hint).toMatch(
    /^Correct the database in the address, or create it in psql: CREATE DATABASE /,
  )
  expect(hint).toMatch(/ template0\. Then create the store: plants stores init ADDRESS$/)
})

test('a rejected login without TLS may need TLS', () => {
  const error = createServerError('28000')
  const hint =
    'Correct the user in the address, let the role log in (ALTER ROLE NAME LOGIN), or correct pg_hba.conf on the server'
  const tlsAdvice =
    'If the server requires TLS, set sslmode=verify-full in the address. Otherwise: '
  expect(explain(error)[1]).toBe(hint)
  expect(explain(error, 'sslmode=disable')[1]).toBe(tlsAdvice + hint)
})
