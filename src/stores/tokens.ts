import { assertDefined } from '../errors.js'

export interface TokenStore {
  /** @param digest the SHA-256 of the token */
  find(digest: Uint8Array): Promise<Token | undefined>
  add(digest: Uint8Array, token: NewToken): Promise<Token>
  /** Includes revoked ones, in the order of creation. */
  list(): AsyncIterable<Token[]>
  revoke(id: bigint, at: Date): Promise<Token | undefined>
}

export const rights = ['create', 'read', 'update', 'delete'] as const
export type Right = (typeof rights)[number]

/** What a store can do whose server is read-only. */
export const readOnlyRights: readonly Right[] = ['read']

export const defaultRights: readonly Right[] = ['create', 'read']

/** Such as "The store does not allow this user to update or delete plants". */
export function describeMissingRights(missing: readonly Right[]): string {
  return `The store does not allow this user to ${formatRights(missing)} plants`
}

/** Such as "create, update or delete". */
export function formatRights(alternatives: readonly Right[]): string {
  const last = alternatives.slice(-1)
  const others = alternatives.slice(0, -1).join(', ')
  return [others, ...last].filter((text) => text !== '').join(' or ')
}

type NewToken = Pick<Token, 'note' | 'rights' | 'createdAt' | 'expiresAt'>

export const tokenColumns = 'id, note, rights, created_at, expires_at, revoked_at'

/** @param times in milliseconds, in the order of `tokenColumns` */
export function buildToken(
  id: bigint,
  note: string | null,
  words: string,
  times: (bigint | string | null)[],
): Token {
  const [createdAt, expiresAt, revokedAt] = times.map((time) =>
    time === null ? undefined : new Date(Number(time)),
  )
  return {
    id,
    note: note ?? undefined,
    rights: rights.filter((right) => words.split(',').includes(right)),
    createdAt: assertDefined(createdAt),
    expiresAt,
    revokedAt,
  }
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

/** @param time milliseconds since 1970 */
export function isValid({ revokedAt, expiresAt }: Token, time: number): boolean {
  return !revokedAt && !(expiresAt && expiresAt.getTime() <= time)
}

/** 256 random bits. Secret scanners recognize the prefix. */
export function createToken(): string {
  return `plants_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}`
}
