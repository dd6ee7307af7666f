import { largestId } from '../../plant/plant.js'
import { pagesOf } from '../common/pages.js'
import { rightsIn, type Token, type TokenStore } from '../common/store.js'
import { checkOrder, idFrom } from './select.js'
import type { Connection } from './sqlite-connection.js'
import { DamageError } from './sqlite-errors.js'
import type { SqliteWriter } from './sqlite-writer.js'

export function sqliteTokens(connection: Connection, writer: SqliteWriter): TokenStore {
  return {
    find: (digest) => connection.run(() => toToken(connection.prepare(findSql).get(digest, digest))),

    async add(digest, token) {
      const { note, rights, createdAt, expiresAt } = token
      const id = await writer.write(() => {
        const sql =
          'INSERT INTO tokens (digest, note, rights, created_at, expires_at) VALUES (?, ?, ?, ?, ?) RETURNING id'
        const row = connection
          .prepare(sql)
          .get(digest, note ?? null, rights.join(), createdAt.getTime(), expiresAt?.getTime() ?? null)
        return (row as { id: bigint }).id // RETURNING always returns a row
      })
      return { id, ...token, revokedAt: undefined, lastUsedAt: undefined }
    },

    list: () => pagesOf({}, (after, rows) => connection.run(() => readTokens(connection, idFrom(after), rows))),

    revoke: (id, at) =>
      writer.write(() => {
        connection.prepare('UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL').run(at.getTime(), id)
        return toToken(connection.prepare(`SELECT ${columns} FROM tokens WHERE id = ?`).get(id))
      }),

    markUsed: (id, at) =>
      writer.write(
        () => void connection.prepare('UPDATE tokens SET last_used_at = ? WHERE id = ?').run(at.getTime(), id),
      ),
  }
}

const columns = 'id, note, rights, created_at, expires_at, revoked_at, last_used_at'

/** Compares the digest again in the table, which `list` shows: the index of a crafted file can have other digests. */
const findSql = `SELECT ${columns} FROM tokens NOT INDEXED WHERE id = (SELECT id FROM tokens WHERE digest = ?) AND digest = ?`

function readTokens(connection: Connection, first: bigint, rows: number): Token[] {
  if (first > largestId) return []
  const found = connection.prepare(`SELECT ${columns} FROM tokens WHERE id >= ? ORDER BY id LIMIT ?`).all(first, rows)
  const page = found.flatMap((row) => toToken(row) ?? [])
  checkOrder(page.at(-1)?.id ?? first, first)
  return page
}

type TokenRow = Record<'id' | 'created_at', bigint> &
  Record<'expires_at' | 'revoked_at' | 'last_used_at', bigint | null> &
  Record<'note' | 'rights', unknown>

function toToken(row: unknown): Token | undefined {
  if (row === undefined) return undefined
  const { id, note, rights, created_at, ...times } = row as TokenRow // the columns of a STRICT table
  if (note !== null && typeof note !== 'string') throw new DamageError(`the token ${id} has a note that is not text`)
  if (typeof rights !== 'string') throw new DamageError(`the token ${id} has rights that are not text`)
  const [expiresAt, revokedAt, lastUsedAt] = [times.expires_at, times.revoked_at, times.last_used_at].map((time) =>
    time === null ? undefined : toDate(time),
  )
  return {
    id,
    note: note ?? undefined,
    rights: rightsIn(rights),
    createdAt: toDate(created_at),
    expiresAt,
    revokedAt,
    lastUsedAt,
  }
}

/** Clamped: outside the range of `Date`, all comparisons are false. */
function toDate(time: bigint): Date {
  return new Date(Math.min(Math.max(Number(time), -8.64e15), 8.64e15))
}
