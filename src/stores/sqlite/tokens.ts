import { pagesOf } from '../query.js'
import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../tokens.js'
import type { Connection } from './connection.js'
import type { Writer } from './writer.js'

const select = `SELECT ${tokenColumns} FROM tokens`

export function createSqliteTokenStore(connection: Connection, writer: Writer): TokenStore {
  const { prepare } = connection
  const tokenOf = (sql: string, ...values: (bigint | number | Uint8Array)[]) => {
    const row = prepare(sql).get(...values)
    return row && toToken(row)
  }
  return {
    find: (digest) => connection.retry(() => tokenOf(`${select} WHERE digest = ?`, digest)),

    add: (digest, { note = null, rights, createdAt, expiresAt }) =>
      writer.transaction(async () => {
        const insert = `INSERT INTO tokens (digest, note, rights, created_at, expires_at)
          VALUES (?, ?, ?, ?, ?) RETURNING ${tokenColumns}`
        const times = [createdAt.getTime(), expiresAt?.getTime() ?? null]
        return toToken(prepare(insert).get(digest, note, rights.join(), ...times))
      }),

    list: () =>
      pagesOf({}, (after = 0n, rows) => {
        const page = `${select} WHERE id > ? ORDER BY id LIMIT ?`
        return connection.retry(() => prepare(page).all(after, rows).map(toToken))
      }),

    revoke: (id, at) => writer.transaction(async () => tokenOf(revoke, at.getTime(), id)),
  }
}

const revoke = `UPDATE tokens SET revoked_at = ifnull(revoked_at, ?) WHERE id = ?
  RETURNING ${tokenColumns}`

/** In the order of `tokenColumns`. */
type TokenRow = [id: bigint, note: string | null, rights: string, ...times: (bigint | null)[]]

function toToken([id, note, rights, ...times]: TokenRow): Token {
  return tokenFrom(id, note, rights, times)
}
