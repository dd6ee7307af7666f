import { largestId } from '../../plant/plant.js'
import { pagesOf } from '../common/pages.js'
import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../common/store.js'
import { checkOrder, idFrom } from './select.js'
import type { Connection } from './sqlite-connection.js'
import { DamageError } from './sqlite-errors.js'
import type { SqliteWriter } from './sqlite-writer.js'

export function sqliteTokens(connection: Connection, writer: SqliteWriter): TokenStore {
  return {
    find: (digest) =>
      connection.run(() => {
        const row = connection.prepare(findSql).get(digest, digest)
        return row && toToken(row)
      }),

    add: (digest, { note, rights, createdAt, expiresAt }) =>
      writer.write(() => {
        const times = [createdAt.getTime(), expiresAt?.getTime() ?? null]
        return toToken(connection.prepare(insertSql).get(digest, note ?? null, rights.join(), ...times))
      }),

    list: () => pagesOf({}, (after, rows) => connection.run(() => readTokens(connection, idFrom(after), rows))),

    revoke: (id, at) =>
      writer.write(() => {
        connection.prepare('UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL').run(at.getTime(), id)
        const row = connection.prepare(`SELECT ${tokenColumns} FROM tokens WHERE id = ?`).get(id)
        return row && toToken(row)
      }),

    markUsed: (id, at) =>
      writer.write(() => {
        connection.prepare('UPDATE tokens SET last_used_at = ? WHERE id = ?').run(at.getTime(), id)
      }),
  }
}

const insertSql = `INSERT INTO tokens (digest, note, rights, created_at, expires_at) VALUES (?, ?, ?, ?, ?) RETURNING ${tokenColumns}`

/** Compares the digest again in the table, which `list` shows: the index of a crafted file can have other digests. */
const findSql = `SELECT ${tokenColumns} FROM tokens NOT INDEXED WHERE id = (SELECT id FROM tokens WHERE digest = ?) AND digest = ?`

function readTokens(connection: Connection, first: bigint, rows: number): Token[] {
  if (first > largestId) return []
  const select = connection.prepare(`SELECT ${tokenColumns} FROM tokens WHERE id >= ? ORDER BY id LIMIT ?`)
  const page = select.all(first, rows).map(toToken)
  checkOrder(page.at(-1)?.id ?? first, first)
  return page
}

type TokenRow = Record<'id' | 'created_at', bigint> &
  Record<'expires_at' | 'revoked_at' | 'last_used_at', bigint | null> &
  Record<'note' | 'rights', unknown>

function toToken(row: unknown): Token {
  const { id, note, rights, created_at, expires_at, revoked_at, last_used_at } = row as TokenRow // of a STRICT table
  if (note !== null && typeof note !== 'string') throw new DamageError(`the token ${id} has a note that is not text`)
  if (typeof rights !== 'string') throw new DamageError(`the token ${id} has rights that are not text`)
  return tokenFrom(id, note, rights, [created_at, expires_at, revoked_at, last_used_at])
}
