import { pagesOf } from '../common/pages.js'
import { type Token, type TokenStore, tokenColumns, tokenFrom } from '../common/store.js'
import type { ConnectionPool } from './pool.js'
import { literal, type Row, toBigInt, tokens } from './sql.js'

export function postgresTokens(connections: ConnectionPool): TokenStore {
  /** @param evidence see `Transaction` */
  const change = (text: string, evidence: string) =>
    connections.transact((transaction) => {
      transaction.evidence.push(() => evidence)
      return transaction.ask(text)
    })

  async function find(digest: Uint8Array): Promise<Token | undefined> {
    const text = `SELECT ${tokenColumns} FROM ${tokens} WHERE digest = ${bytes(digest)}`
    return (await connections.query(text)).map(toToken)[0]
  }

  return {
    find,

    async add(digest, { note, rights, createdAt, expiresAt }) {
      const values = [bytes(digest), ...[note, rights.join(), createdAt.getTime(), expiresAt?.getTime()].map(literal)]
      const insert = `INSERT INTO ${tokens} (digest, note, rights, created_at, expires_at) VALUES (${values.join()})
        ON CONFLICT DO NOTHING`
      await change(insert, `EXISTS (SELECT FROM ${tokens} WHERE digest = ${bytes(digest)})`)
      const added = await find(digest)
      if (!added) throw new Error('The added token is missing')
      return added
    },

    list() {
      return pagesOf({}, async (after = 0n, rows) => {
        const page = `WHERE id > ${literal(after)} ORDER BY id LIMIT ${rows}`
        return (await connections.query(`SELECT ${tokenColumns} FROM ${tokens} ${page}`)).map(toToken)
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
