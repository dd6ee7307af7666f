export interface TokenStore {
  /** @param digest the SHA-256 of the token */
  find(digest: Uint8Array): Promise<Token | undefined>
  add(digest: Uint8Array, token: NewToken): Promise<Token>
  /** Includes revoked tokens. In the order of their creation. */
  list(): AsyncIterable<Token[]>
  /** Undefined if there is none with this id. */
  revoke(id: bigint, at: Date): Promise<Token | undefined>
}

export const rights = ['create', 'read', 'update', 'delete'] as const
export type Right = (typeof rights)[number]

export const defaultRights: readonly Right[] = ['create', 'read']

/** Ignores unknown words, such as rights of a newer version. */
export function rightsIn(text: string): Right[] {
  const words = text.split(',')
  return rights.filter((right) => words.includes(right))
}

type NewToken = Pick<Token, 'note' | 'rights' | 'createdAt' | 'expiresAt'>

export const tokenColumns = 'id, note, rights, created_at, expires_at, revoked_at'

/** @param times in milliseconds, in the order of `tokenColumns` */
export function tokenFrom(
  id: bigint,
  note: string | null,
  rights: string,
  times: (bigint | string | null)[],
): Token {
  const [createdAt, expiresAt, revokedAt] = times.map((time) =>
    time === null ? undefined : toDate(time),
  )
  return {
    id,
    note: note ?? undefined,
    rights: rightsIn(rights),
    createdAt: createdAt ?? new Date(0), // of a damaged row
    expiresAt,
    revokedAt,
  }
}

/** Clamped: outside the range of `Date`, all comparisons are false. */
function toDate(time: bigint | string): Date {
  return new Date(Math.min(Math.max(Number(time), -8.64e15), 8.64e15))
}

export interface Token {
  id: bigint
  note: string | undefined
  /** In the order of `rights`. */
  rights: readonly Right[]
  createdAt: Date
  expiresAt: Date | undefined
  revokedAt: Date | undefined
}
