import { assertDefined, createUsageError, type PlantsError } from '../errors.js'
import { type Address, type AddressContext, createAddressError } from './address.js'
import { httpKind } from './http/kind.js'
import { postgresKind } from './postgres/kind.js'
import { sqliteKind } from './sqlite/kind.js'
import { type Capabilities, MissingCapability, type StoreKind } from './store-kind.js'

export type Capability = keyof Capabilities

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

/** Joins the nouns of the kinds that have a capability, such as "a file or a database". */
export function describeKindsWith(capability: Capability): string {
  const capableKinds = Object.values(kinds).filter(
    ({ capabilities }) => !(capabilities[capability] instanceof MissingCapability),
  )
  return capableKinds.map(({ noun }) => noun).join(' or ')
}

/**
 * @param option the option that needs the capability, such as `--atomic`; without it, the command
 *   itself needs the capability
 * @throws {PlantsError} `usage` if the kind of the address lacks it
 */
export function requireCapability<Name extends Capability>(
  address: Address,
  capability: Name,
  option?: string,
): Capabilities[Name] {
  const offers: { readonly [Offered in Name]: Capabilities[Offered] | MissingCapability } =
    findKind(address).capabilities
  const offer: Capabilities[Name] | MissingCapability = offers[capability]
  if (offer instanceof MissingCapability) throw createCapabilityError(address, offer, option)
  return offer
}

function createCapabilityError(
  address: Address,
  { reason, hint }: MissingCapability,
  option: string | undefined,
): PlantsError {
  const { noun } = findKind(address)
  if (option === undefined) return createUsageError(`${address.name} is ${noun}, ${reason}`, hint)
  return createUsageError(`${option} is not supported at ${address.name}: ${noun} ${reason}`, hint)
}
