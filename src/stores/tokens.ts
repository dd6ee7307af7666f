export interface TokenStore {
  /** @param digest the SHA-256 of the token */
  find(digest: Uint8Array): Promise<Token | undefined>
  add(digest: Uint8Array, token: NewToken): Promise<Token>
  /** Lists all tokens in the order in which they were created, revoked ones too. */
  list(): AsyncIterable<Token[]>
  revoke(id: bigint, revocationTime: Date): Promise<Token | undefined>
}

export const rights = ['create', 'read', 'update', 'delete'] as const
export type Right = (typeof rights)[number]

/** A store whose server is read-only has these rights. */
export const readOnlyRights: readonly Right[] = ['read']

export const defaultRights: readonly Right[] = ['create', 'read']

/** Describes rights, as in "The store does not allow this user to update or delete plants". */
export function describeMissingRights(missingRights: readonly Right[]): string {
  return `The store does not allow this user to ${formatRights(missingRights)} plants`
}

/** Formats rights as a list of words: "create, update or delete". */
export function formatRights(alternatives: readonly Right[]): string {
  const last = alternatives.slice(-1)
  const first = alternatives.slice(0, -1).join(', ')
  return [first, ...last].filter((text) => text !== '').join(' or ')
}

type NewToken = Pick<Token, 'note' | 'rights' | 'createdAt' | 'expiresAt'>

export const tokenColumns = 'id, note, rights, created_at, expires_at, revoked_at'

/**
 * Builds a token from the values of a row, which has the columns of `tokenColumns`.
 *
 * @param rightNames separated by commas
 * @param times in milliseconds since 1970
 * @returns undefined if a time exceeds the range of a `Date`. A token that never expires has no
 *   time, rather than a time in the far future.
 */
export function buildToken(
  id: bigint,
  note: string | null,
  rightNames: string,
  times: (bigint | string | null)[],
): Token | undefined {
  const [createdAt, expiresAt, revokedAt] = times.map((time) =>
    time === null ? undefined : new Date(Number(time)),
  )
  const isValidTime = (time: Date | undefined) => !time || !Number.isNaN(time.getTime())
  if (createdAt === undefined || ![createdAt, expiresAt, revokedAt].every(isValidTime))
    return undefined
  return {
    id,
    note: note ?? undefined,
    rights: rights.filter((right) => rightNames.split(',').includes(right)),
    createdAt,
    expiresAt,
    revokedAt,
  }
}

export interface Token {
  id: bigint
  note: string | undefined
  /** These have the order of the constant `rights`. */
  rights: readonly Right[]
  createdAt: Date
  expiresAt: Date | undefined
  revokedAt: Date | undefined
}

/** @param time milliseconds since 1970 */
export function isValidToken({ revokedAt, expiresAt }: Token, time: number): boolean {
  return !revokedAt && !(expiresAt && expiresAt.getTime() <= time)
}

/**
 * A token has 256 random bits, so nobody can guess it. Its prefix lets scanners that look for
 * secrets in repositories recognize it.
 */
export function createToken(): string {
  return `plants_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}`
}
