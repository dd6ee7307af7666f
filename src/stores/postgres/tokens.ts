import { rightsIn, type Token, type TokenStore, tokensAtOnce } from '../store.js'
import type { Rows } from './connection.js'
import { bytesLiteral, literal, orNull, tokens } from './sql.js'

/** The tokens of a store, beside its plants. */
export class PostgresTokens implements TokenStore {
  readonly #query: (statement: string) => Promise<Rows>

  /** @param query runs a statement that can be run twice */
  constructor(query: (statement: string) => Promise<Rows>) {
    this.#query = query
  }

  async find(digest: Uint8Array): Promise<Token | undefined> {
    return toToken((await this.#query(`SELECT ${columns} FROM ${tokens} WHERE digest = ${bytesLiteral(digest)}`))[0])
  }

  async add(digest: Uint8Array, { note, rights, createdAt, expiresAt }: Omit<Token, 'id' | 'revokedAt'>): Promise<Token> {
    const values = [bytesLiteral(digest), orNull(note), literal(rights.join()), createdAt.getTime(), expiresAt?.getTime() ?? 'NULL']
    await this.#query(`INSERT INTO ${tokens} (digest, note, rights, created_at, expires_at) VALUES (${values}) ON CONFLICT DO NOTHING`)
    const added = await this.find(digest)
    if (!added) throw new Error('The token that was added is not there')
    return added
  }

  async *list(): AsyncIterable<Token[]> {
    for (let last = 0n; ; ) {
      const rows = await this.#query(`SELECT ${columns} FROM ${tokens} WHERE id > ${last} ORDER BY id LIMIT ${tokensAtOnce}`)
      const page = rows.flatMap((row) => toToken(row) ?? [])
      if (page.length > 0) yield page
      if (page.length < tokensAtOnce) return
      last = page.at(-1)?.id ?? last
    }
  }

  async revoke(id: bigint, at: Date): Promise<Token | undefined> {
    await this.#query(`UPDATE ${tokens} SET revoked_at = ${at.getTime()} WHERE id = ${id} AND revoked_at IS NULL`)
    return toToken((await this.#query(`SELECT ${columns} FROM ${tokens} WHERE id = ${id}`))[0])
  }
}

const columns = 'id, note, rights, created_at, expires_at, revoked_at'

function toToken(row: Rows[number] | undefined): Token | undefined {
  if (!row) return undefined
  const [id, note, rights, createdAt, expiresAt, revokedAt] = row
  return {
    id: BigInt(id ?? 0),
    note: note ?? undefined,
    rights: rightsIn(rights ?? ''),
    createdAt: new Date(Number(createdAt)),
    expiresAt: toDate(expiresAt),
    revokedAt: toDate(revokedAt),
  }
}

function toDate(time: string | null | undefined): Date | undefined {
  return time == null ? undefined : new Date(Number(time))
}
