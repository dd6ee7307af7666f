import { pagesOf } from '../common/query.js'
import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../common/token-store.js'
import type { Connection } from './connection.js'
import type { Writer } from './writer.js'

export function sqliteTokens(connection: Connection, writer: Writer): TokenStore {
  return {
    find: (digest) =>
      connection.retry(() => {
        const select = `SELECT ${tokenColumns} FROM tokens WHERE digest = ?`
        const row = connection.prepare(select).get(digest)
        return row && toToken(row)
      }),

    add: (digest, { note = null, rights, createdAt, expiresAt }) =>
      writer.write(() => {
        const insert = `INSERT INTO tokens (digest, note, rights, created_at, expires_at)
          VALUES (?, ?, ?, ?, ?) RETURNING ${tokenColumns}`
        const times = [createdAt.getTime(), expiresAt?.getTime() ?? null]
        return toToken(connection.prepare(insert).get(digest, note, rights.join(), ...times))
      }),

    list: () =>
      pagesOf({}, (after = 0n, rows) =>
        connection.retry(() => {
          const select = `SELECT ${tokenColumns} FROM tokens WHERE id > ? ORDER BY id LIMIT ?`
          return connection.prepare(select).all(after, rows).map(toToken)
        }),
      ),

    revoke: (id, at) =>
      writer.write(() => {
        const update = 'UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'
        connection.prepare(update).run(at.getTime(), id)
        const select = `SELECT ${tokenColumns} FROM tokens WHERE id = ?`
        const row = connection.prepare(select).get(id)
        return row && toToken(row)
      }),
  }
}

/** In the order of `tokenColumns`, as the STRICT table has them. */
type TokenRow = [id: bigint, note: string | null, rights: string, ...times: (bigint | null)[]]

function toToken([id, note, rights, ...times]: TokenRow): Token {
  return tokenFrom(id, note, rights, times)
}
