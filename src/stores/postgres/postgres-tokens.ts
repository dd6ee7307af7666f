import { must } from '../../platform/values.js'
import { pagesOf } from '../common/pages.js'
import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../common/store.js'
import type { ConnectionPool } from './pool.js'
import { literal, type Row, toBigInt, tokens } from './sql.js'
import { transact } from './transaction.js'

export function postgresTokens(pool: ConnectionPool): TokenStore {
  /** @param evidence see `Transaction` */
  const change = (text: string, evidence: string) =>
    transact(pool, (transaction) => {
      transaction.evidence.push(() => evidence)
      return transaction.ask(text)
    })

  return {
    async find(digest) {
      const text = `SELECT ${tokenColumns} FROM ${tokens} WHERE digest = ${bytes(digest)}`
      return (await pool.query(text)).map(toToken)[0]
    },

    async add(digest, { note, rights, createdAt, expiresAt }) {
      const values = [bytes(digest), ...[note, rights.join(), createdAt.getTime(), expiresAt?.getTime()].map(literal)]
      const insert = `INSERT INTO ${tokens} (digest, note, rights, created_at, expires_at) VALUES (${values.join()})
        RETURNING ${tokenColumns}`
      const added = await change(insert, `EXISTS (SELECT FROM ${tokens} WHERE digest = ${bytes(digest)})`)
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
      const isValid = `id = ${literal(id)} AND revoked_at IS NULL`
      return (await change(text, `NOT EXISTS (SELECT FROM ${tokens} WHERE ${isValid})`)).map(toToken)[0]
    },
  }
}

function bytes(digest: Uint8Array): string {
  return `'\\x${Buffer.from(digest).toString('hex')}'::bytea`
}

function toToken([id, note = null, rights, ...times]: Row): Token {
  return tokenFrom(toBigInt(id), note, `${rights}`, times)
}
