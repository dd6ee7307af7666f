import { assertDefined, createUsageError } from '../errors.js'
import { type Address, type AddressContext, createAddressError } from './address.js'
import { httpKind } from './http/kind.js'
import { postgresKind } from './postgres/kind.js'
import { sqliteKind } from './sqlite/kind.js'
import { type Capabilities, MissingCapability, type StoreKind } from './store-kind.js'

type Capability = keyof Capabilities

/**
 * An address belongs to the first of these kinds that matches it. The file is the last kind,
 * because any string is a path.
 */
const kinds: {
  readonly [Scheme in Address['scheme']]: StoreKind<Extract<Address, { scheme: Scheme }>>
} = {
  http: httpKind,
  postgres: postgresKind,
  sqlite: sqliteKind,
}

export function findKind(address: Address): StoreKind {
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
  const candidates: StoreKind[] = Object.values(kinds)
  // The last kind matches every string.
  const kind = assertDefined(candidates.find((candidate) => candidate.matches(text)))
  return kind.parse(text, source, context)
}

export function hasCapability(address: Address, capability: Capability): boolean {
  return !(findKind(address).capabilities[capability] instanceof MissingCapability)
}

/** @throws {PlantsError} `usage` if the kind of the address lacks the capability */
export function requireCapability<Name extends Capability>(
  address: Address,
  capability: Name,
): Capabilities[Name] {
  const { noun, capabilities } = findKind(address)
  const offers: { readonly [Offered in Name]: Capabilities[Offered] | MissingCapability } =
    capabilities
  const offer: Capabilities[Name] | MissingCapability = offers[capability]
  if (offer instanceof MissingCapability)
    throw createUsageError(`${address.name} is ${noun}, ${offer.reason}`, offer.hint)
  return offer
}
