import type { QueryConfig } from 'pg'
import { pagesOf } from '../common/pages.js'
import { rightsIn, type Token, type TokenStore } from '../common/store.js'
import { durable, type Row, tokens } from './sql.js'

/** @param query runs an idempotent statement */
export function postgresTokens(query: (statement: QueryConfig) => Promise<Row[]>): TokenStore {
  const find = async (digest: Uint8Array) => {
    const text = `SELECT ${columns} FROM ${tokens} WHERE digest OPERATOR(pg_catalog.=) $1`
    return toToken((await query({ text, values: [Buffer.from(digest)] }))[0])
  }
  return {
    find,

    async add(digest, { note, rights, createdAt, expiresAt }) {
      const text = `INSERT INTO ${tokens} (digest, note, rights, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT DO NOTHING RETURNING ${durable}`
      const times = [createdAt.getTime(), expiresAt?.getTime()]
      await query({ text, values: [Buffer.from(digest), note, rights.join(), ...times] })
      const added = await find(digest)
      if (!added) throw new Error('The added token is missing')
      return added
    },

    list() {
      const text = `SELECT ${columns} FROM ${tokens} WHERE id OPERATOR(pg_catalog.>) $1 ORDER BY id LIMIT $2`
      return pagesOf({}, async (after = 0n, rows) =>
        (await query({ text, values: [after, rows] })).flatMap((row) => toToken(row) ?? []),
      )
    },

    async revoke(id, at) {
      const text = `UPDATE ${tokens} SET revoked_at = coalesce(revoked_at, $2) WHERE id OPERATOR(pg_catalog.=) $1 RETURNING ${columns}, ${durable}`
      return toToken((await query({ text, values: [id, at.getTime()] }))[0])
    },

    async markUsed(id, at) {
      const text = `UPDATE ${tokens} SET last_used_at = $2 WHERE id OPERATOR(pg_catalog.=) $1`
      await query({ text, values: [id, at.getTime()] })
    },
  }
}

const columns = 'id, note, rights, created_at, expires_at, revoked_at, last_used_at'

function toToken(row: Row | undefined): Token | undefined {
  if (!row) return undefined
  const [id, note, rights, createdAt, expiresAt, revokedAt, lastUsedAt] = row
  return {
    id: BigInt(id ?? 0),
    note: note ?? undefined,
    rights: rightsIn(rights ?? ''),
    createdAt: new Date(Number(createdAt)),
    expiresAt: toDate(expiresAt),
    revokedAt: toDate(revokedAt),
    lastUsedAt: toDate(lastUsedAt),
  }
}

function toDate(time: string | null | undefined): Date | undefined {
  return time == null ? undefined : new Date(Number(time))
}
