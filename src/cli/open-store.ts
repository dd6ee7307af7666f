/*
 * Opens the store of a command.
 */
import { assertDefined, PlantsError } from '../errors.js'
import { quoteIfNeeded } from '../output/output.js'
import { createDefaultHint, createNoStoreError } from '../stores/address.js'
import { findKind, requireDirectKind } from '../stores/kinds.js'
import { describeRetry } from '../stores/retry.js'
import type { DirectStore, Store } from '../stores/store.js'
import type { OpenContext, Purpose } from '../stores/store-kind.js'
import type { CommandContext } from './context.js'

/** What a store needs to know of a command. */
export function createOpenContext(context: CommandContext): OpenContext {
  const { settings, reporter, io, options } = context
  const { timeoutMs } = settings
  // A store in a file needs neither tokens nor passwords, so a command on one starts sooner.
  const loadAccess = () => import('./store-access.js')
  return {
    timeoutMs,
    runtime: io,
    retryMs: options.retry,
    findAccess: async (target) => (await loadAccess()).findAccess(target, context),
    findLogin: async (database) => (await loadAccess()).findLogin(database, context),
    onCreated: (path) => reporter.warn(`Created store ${path}`),
    onExposed: (warning) => reporter.warn(warning, 'warning'),
    onUnreachable: async (failure, retryBudgetMs = timeoutMs) => {
      if (failure) await reporter.warnMeanwhile(describeRetry(failure, retryBudgetMs))
    },
  }
}

/**
 * Opens the store. Warns of a default store that does not exist yet, and returns undefined: it has
 * no plants.
 *
 * @param mustExist whether the default store must exist, too
 * @throws {PlantsError} `accessDenied` for any other store that does not exist
 */
export async function openStore(
  context: CommandContext,
  mustExist = false,
): Promise<Store | undefined> {
  const { address } = context
  const store = await findKind(address).open(address, 'read', createOpenContext(context))
  if (!store) await warnOfMissingStore(context, mustExist)
  return store
}

/** Opens the store as `openStore` does, if it is a direct one. */
export async function openDirectStore(context: CommandContext): Promise<DirectStore | undefined> {
  const store = await openDirect(context, 'read')
  if (!store) await warnOfMissingStore(context)
  return store
}

async function warnOfMissingStore(context: CommandContext, mustExist = false): Promise<void> {
  const error = createMissingStoreError(context)
  if (mustExist || !isDefaultStore(context)) throw error
  await context.reporter.warn(`${error.message} yet. ${error.hint}`)
}

/** Opens the store, and creates a missing file. */
export async function openToWrite(context: CommandContext): Promise<Store> {
  const { address } = context
  const kind = findKind(address)
  return assertDefined(await kind.open(address, 'write', createOpenContext(context)))
}

/**
 * Opens a direct store for a purpose, and says nothing of a missing one.
 *
 * @param changes members that replace those of the context, such as listeners of events
 * @throws {PlantsError} `usage` for a service
 */
export async function openDirect(
  context: CommandContext,
  purpose: Purpose,
  changes: Partial<OpenContext> = {},
): Promise<DirectStore | undefined> {
  const { address } = context
  const openContext = { ...createOpenContext(context), ...changes }
  return requireDirectKind(address).open(address, purpose, openContext)
}

export function createMissingStoreError(context: CommandContext): PlantsError {
  const { address } = context
  if (!isDefaultStore(context)) return createNoStoreError(address)
  const message = `The default store ${address.name} does not exist`
  return new PlantsError('accessDenied', message, { hint: createDefaultHint })
}

/**
 * Describes the store for a question, such as `prod (/srv/garden.db)`. It returns undefined for the
 * default store, because people expect that store.
 */
export function describeStore(context: CommandContext): string | undefined {
  if (isDefaultStore(context)) return undefined
  const { storeName } = context.settings
  const name = quoteIfNeeded(context.address.name)
  return storeName === undefined ? name : `${storeName} (${name})`
}

function isDefaultStore({ address }: CommandContext): boolean {
  return findKind(address).isDefault?.(address) === true
}
