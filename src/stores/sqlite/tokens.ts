import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../common/token-store.js'
import type { Connection } from './connection.js'
import type { Writer } from './writer.js'

const select = `SELECT ${tokenColumns} FROM tokens`

export function sqliteTokens(connection: Connection, writer: Writer): TokenStore {
  const { prepare } = connection
  return {
    find: (digest) =>
      connection.retry(() => {
        const row = prepare(`${select} WHERE digest = ?`).get(digest)
        return row && toToken(row)
      }),

    add: (digest, { note = null, rights, createdAt, expiresAt }) =>
      writer.write(() => {
        const insert = `INSERT INTO tokens (digest, note, rights, created_at, expires_at)
          VALUES (?, ?, ?, ?, ?) RETURNING ${tokenColumns}`
        const times = [createdAt.getTime(), expiresAt?.getTime() ?? null]
        return toToken(prepare(insert).get(digest, note, rights.join(), ...times))
      }),

    async *list() {
      yield await connection.retry(() => prepare(`${select} ORDER BY id`).all().map(toToken))
    },

    revoke: (id, at) =>
      writer.write(() => {
        const update = 'UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'
        prepare(update).run(at.getTime(), id)
        const row = prepare(`${select} WHERE id = ?`).get(id)
        return row && toToken(row)
      }),
  }
}

/** In the order of `tokenColumns`, as the STRICT table has them. */
type TokenRow = [id: bigint, note: string | null, rights: string, ...times: (bigint | null)[]]

function toToken([id, note, rights, ...times]: TokenRow): Token {
  return tokenFrom(id, note, rights, times)
}
