import { must } from '../../platform/values.js'
import { pagesOf } from '../common/pages.js'
import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../common/store.js'
import type { ConnectionPool } from './pool.js'
import { literal, type Row, toBigInt, tokens } from './sql.js'
import { transact } from './transaction.js'

export function postgresTokens(pool: ConnectionPool): TokenStore {
  /** A statement that may be repeated. */
  const change = (text: string) => transact(pool, (transaction) => transaction.ask(text))

  return {
    async find(digest) {
      const text = `SELECT ${tokenColumns} FROM ${tokens} WHERE digest = ${bytes(digest)}`
      return (await pool.query(text)).map(toToken)[0]
    },

    async add(digest, { note, rights, createdAt, expiresAt }) {
      const values = [bytes(digest), ...[note, rights.join(), createdAt.getTime(), expiresAt?.getTime()].map(literal)]
      const added = await change(`INSERT INTO ${tokens} (digest, note, rights, created_at, expires_at)
        VALUES (${values.join()}) ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest RETURNING ${tokenColumns}`)
      return toToken(must(added[0]))
    },

    list() {
      return pagesOf({}, async (after = 0n, rows) => {
        const page = `WHERE id > ${literal(after)} ORDER BY id LIMIT ${rows}`
        return (await pool.query(`SELECT ${tokenColumns} FROM ${tokens} ${page}`)).map(toToken)
      })
    },

    async revoke(id, at) {
      const text = `UPDATE ${tokens} SET revoked_at = coalesce(revoked_at, ${literal(at.getTime())})
        WHERE id = ${literal(id)} RETURNING ${tokenColumns}`
      return (await change(text)).map(toToken)[0]
    },
  }
}

function bytes(digest: Uint8Array): string {
  return `'\\x${Buffer.from(digest).toString('hex')}'::bytea`
}

function toToken([id, note = null, rights, ...times]: Row): Token {
  return tokenFrom(toBigInt(id), note, `${rights}`, times)
}
