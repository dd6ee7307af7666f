import pg from 'pg'
import { expect, test } from 'vitest'
import type { ErrorKind } from '../../../../src/errors.js'
import { toPlantsError } from '../../../../src/stores/postgres/explain.js'
import { buildDatabaseOptions, parseDatabaseAddress } from '../../../helpers/postgres/database.js'

// The kind of an error decides the exit code, and whether the call is repeated.

const codesByKind: [ErrorKind, codes: string[]][] = [
  ['unavailable', ['ECONNREFUSED', 'ENOENT', 'ETIMEDOUT', 'EHOSTUNREACH', 'ECONNRESET', '08006']],
  ['unavailable', ['23505', '25006', '40001', '53300', '55P03', '57014', '57P01', '58030']],
  ['accessDenied', ['EACCES', 'ENOTFOUND', 'CERT_HAS_EXPIRED', 'SELF_SIGNED_CERT_IN_CHAIN']],
  ['accessDenied', ['CERT_REVOKED', 'UNABLE_TO_GET_CRL', 'ERR_TLS_CERT_ALTNAME_INVALID']],
  ['accessDenied', ['3D000', '3F000', '42501', '42703', '42P01', '22001', 'XX000']],
  ['unauthorized', ['28000', '28P01']],
]

const rows = codesByKind.flatMap(([kind, codes]) => codes.map((code) => ({ code, kind })))

test.each(rows)('an error with the code $code is $kind, and has a hint', ({ code, kind }) => {
  const address = parseDatabaseAddress({ url: 'postgres://db.example/garden' })
  const isOfServer = /^\d|^XX/.test(code)
  const error = isOfServer ? new pg.DatabaseError('reported', 0, 'error') : new Error('connect')
  const options = { ...buildDatabaseOptions({ env: {} }), address }
  const explained = toPlantsError(Object.assign(error, { code }), options)
  expect(explained).toMatchObject({ kind, hint: expect.any(String), cause: error })
})
