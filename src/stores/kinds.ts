import { assertDefined, createUsageError, type PlantsError } from '../errors.js'
import { type Address, type AddressContext, createAddressError } from './address.js'
import { httpKind } from './http/kind.js'
import { postgresKind } from './postgres/kind.js'
import { sqliteKind } from './sqlite/kind.js'
import type { DirectKind, StoreKind } from './store-kind.js'

type Scheme = Address['scheme']
type AddressOf<S extends Scheme> = Extract<Address, { scheme: S }>
/** What commands need, and some kinds lack. */
type Ability = 'backUp' | 'restore' | 'token'
type Reason = readonly [reason: string, hint: string]

/**
 * An address belongs to the first of these kinds that matches it. The file is the last kind,
 * because any string is a path.
 */
const kinds: { readonly [S in Scheme]: StoreKind<AddressOf<S>> } = {
  http: httpKind,
  postgres: postgresKind,
  sqlite: sqliteKind,
}

const needsStore: Reason = [
  'but this command needs the store itself',
  'Run the command on the host of the service',
]

/** Why a kind lacks an ability: the end of a sentence that begins like "garden.db is a file, ". */
const reasons: Record<Scheme, { readonly [Name in Ability | 'direct']?: Reason }> = {
  http: { direct: needsStore, backUp: needsStore, restore: needsStore },
  postgres: {
    backUp: ['which has backups of its own', 'Use pg_dump'],
    restore: ['which has backups of its own', 'Use pg_restore'],
    token: ['and uses no token', 'If it requires a password: set PGPASSWORD'],
  },
  sqlite: {
    token: [
      'and uses no token',
      'Select a service: --store https://plants.example.com, or a saved name',
    ],
  },
}

export function findKind<S extends Scheme>(address: { scheme: S }): StoreKind<AddressOf<S>> {
  return kinds[address.scheme]
}

/**
 * @param source where the address comes from. Messages say this instead of the address, which may
 *   contain a password.
 */
export async function parseAddress(
  text: string,
  source: string,
  context: AddressContext,
): Promise<Address> {
  if (/\0|%00/.test(text))
    throw createAddressError(source, 'contains U+0000, which is not allowed in an address')
  // The last kind matches every string.
  const kind = assertDefined(Object.values(kinds).find((candidate) => candidate.matches(text)))
  return kind.parse(text, source, context)
}

/** @throws {PlantsError} `usage` for a service */
export function requireDirectKind(address: Address): DirectKind {
  const kind = findKind(address)
  if (!kind.isDirect) throw createLackError(address, 'direct')
  return kind
}

/** @throws {PlantsError} `usage` if the kind of the address lacks the ability */
export function requireAbility<Name extends Ability>(
  address: Address,
  name: Name,
): NonNullable<StoreKind[Name]> {
  const ability: StoreKind[Name] = findKind(address)[name]
  if (!ability) throw createLackError(address, name)
  return ability
}

function createLackError(address: Address, name: Ability | 'direct'): PlantsError {
  const [reason, hint] = assertDefined(reasons[address.scheme][name])
  return createUsageError(`${address.name} is ${findKind(address).noun}, ${reason}`, hint)
}
