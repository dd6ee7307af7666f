import { readInPages } from '../query.js'
import { buildToken, type Token, type TokenStore, tokenColumns } from '../tokens.js'
import type { Connection } from './connection.js'
import { StoreDamageError } from './explain.js'
import type { Writer } from './writer.js'

const select = `SELECT ${tokenColumns} FROM tokens`

const selectByDigest = `${select} WHERE digest = ?`

const selectPage = `${select} WHERE id > ? ORDER BY id LIMIT ?`

const insert = `INSERT INTO tokens (digest, note, rights, created_at, expires_at)
  VALUES (?, ?, ?, ?, ?) RETURNING ${tokenColumns}`

/** A second revocation changes nothing, so that the time of the first one stays. */
const revoke = `UPDATE tokens SET revoked_at = ifnull(revoked_at, ?) WHERE id = ?
  RETURNING ${tokenColumns}`

export function createSqliteTokenStore(connection: Connection, writer: Writer): TokenStore {
  const { prepare } = connection
  const getToken = (sql: string, ...values: (bigint | number | Uint8Array)[]) => {
    const row = prepare(sql).get(...values)
    return row && toToken(row)
  }
  return {
    find: (digest) => connection.retryWhileLocked(() => getToken(selectByDigest, digest)),

    add: (digest, { note = null, rights, createdAt, expiresAt }) =>
      writer.transaction(async () => {
        const times = [createdAt.getTime(), expiresAt?.getTime() ?? null]
        const row = prepare(insert).get(digest, note, rights.join(), ...times)
        return toToken(row)
      }),

    list: () =>
      readInPages({}, (after = 0n, rows) =>
        connection.retryWhileLocked(() => prepare(selectPage).all(after, rows).map(toToken)),
      ),

    revoke: (id, revocationTime) =>
      writer.transaction(async () => getToken(revoke, revocationTime.getTime(), id)),
  }
}

/** A row has the columns of `tokenColumns`, and the connection returns rows as arrays. */
type TokenRow = [id: bigint, note: string | null, rights: string, ...times: (bigint | null)[]]

/** @throws {StoreDamageError} for a time that only another program can have written */
function toToken([id, note, rights, ...times]: TokenRow): Token {
  const token = buildToken(id, note, rights, times)
  if (token) return token
  throw new StoreDamageError(`token ${id} has an invalid time`)
}
