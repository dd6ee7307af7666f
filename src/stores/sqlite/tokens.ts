import { pagesOf } from '../common/query.js'
import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../common/token-store.js'
import type { Connection } from './connection.js'
import type { Writer } from './writer.js'

const select = `SELECT ${tokenColumns} FROM tokens`

export function sqliteTokens(connection: Connection, writer: Writer): TokenStore {
  const { prepare } = connection
  const findBy = (column: 'id' | 'digest', value: bigint | Uint8Array) => {
    const row = prepare(`${select} WHERE ${column} = ?`).get(value)
    return row && toToken(row)
  }
  return {
    find: (digest) => connection.retry(() => findBy('digest', digest)),

    add: (digest, { note = null, rights, createdAt, expiresAt }) =>
      writer.write(() => {
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

    revoke: (id, at) =>
      writer.write(() => {
        const update = 'UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'
        prepare(update).run(at.getTime(), id)
        return findBy('id', id)
      }),
  }
}

/** In the order of `tokenColumns`. */
type TokenRow = [id: bigint, note: string | null, rights: string, ...times: (bigint | null)[]]

function toToken([id, note, rights, ...times]: TokenRow): Token {
  return tokenFrom(id, note, rights, times)
}
