import { hash, randomBytes } from 'node:crypto'

/** A new bearer token: 256 random bits, behind a prefix by which scanners for lost secrets find it. */
export function newToken(): string {
  return `plants_${randomBytes(32).toString('base64url')}`
}

/** SHA-256 of a token: all that a store keeps of it. */
export function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
