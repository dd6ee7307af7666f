import type { QueryConfig } from 'pg'
import { pagesOf } from '../common/pages.js'
import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../common/store.js'
import { durable, eq, type Row, tokens } from './sql.js'

/** @param query runs an idempotent statement */
export function postgresTokens(query: (statement: QueryConfig) => Promise<Row[]>): TokenStore {
  const find = async (digest: Uint8Array) => {
    const text = `SELECT ${tokenColumns} FROM ${tokens} WHERE digest ${eq} $1`
    return (await query({ text, values: [Buffer.from(digest)] })).map(toToken)[0]
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
      const text = `SELECT ${tokenColumns} FROM ${tokens} WHERE id OPERATOR(pg_catalog.>) $1 ORDER BY id LIMIT $2`
      return pagesOf({}, async (after = 0n, rows) => (await query({ text, values: [after, rows] })).map(toToken))
    },

    async revoke(id, at) {
      const text = `UPDATE ${tokens} SET revoked_at = coalesce(revoked_at, $2) WHERE id ${eq} $1 RETURNING ${tokenColumns}, ${durable}`
      return (await query({ text, values: [id, at.getTime()] })).map(toToken)[0]
    },

    async markUsed(id, at) {
      const text = `UPDATE ${tokens} SET last_used_at = $2 WHERE id ${eq} $1`
      await query({ text, values: [id, at.getTime()] })
    },
  }
}

function toToken([id, note = null, rights, ...times]: Row): Token {
  return tokenFrom(BigInt(id ?? 0), note, rights ?? '', times)
}
