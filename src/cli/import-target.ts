import { PlantsError } from '../platform/errors.js'
import { completeAddress, type HttpAddress } from '../stores/common/address.js'
import type { OwnStore, Store } from '../stores/common/store.js'
import { checkpointId } from '../transfer/import/checkpoint.js'
import { dryRunOf } from '../transfer/import/dry-run.js'
import type { ImportTarget } from '../transfer/import/importer.js'
import type { ImportPlan } from '../transfer/import/input.js'
import { openJournal } from '../transfer/import/journal.js'
import type { CommandContext } from './command-context.js'
import type { ImportOptions } from './import-options.js'
import type { ImportReport } from './import-report.js'

export interface OpenTarget extends ImportTarget, Partial<Pick<OwnStore, 'checkpoint'>> {
  /** Undefined if there is none yet, or if it cannot be read. */
  store: Pick<Store, 'read'> | undefined
  /** Found in a journal of an earlier version, which is not resumed. */
  oldCheckpoint?: string | undefined
  close(): Promise<void>
}

/** The store, a dry run of it, or a service with the journal of this import. */
export async function openTarget(
  plan: ImportPlan,
  report: ImportReport,
  options: ImportOptions,
  context: CommandContext,
): Promise<OpenTarget> {
  const { address, sqliteOptions, reporter, io } = context
  if (options.dryRun) {
    const mayBeUnreadable = address.scheme === 'http' && !options.match
    const store = await (mayBeUnreadable
      ? openReadable(address, context)
      : (await context.opener()).openExisting())
    const isReadable = store !== undefined || !mayBeUnreadable
    if (!isReadable)
      await reporter.warn(`Only the input is checked, not which ids exist at ${address.name}`)
    const { write, close } = dryRunOf(store, isReadable, (changes) => report.writeChanges(changes))
    return { store, isService: false, id: undefined, transaction: withoutCheckpoint(write), close }
  }
  const paths = plan.inputs.map(({ path }) => path)
  const id = paths.includes('-') ? undefined : checkpointId(completeAddress(address), paths)
  if (address.scheme !== 'http') {
    const store = await (await context.ownOpener()).open()
    return {
      store,
      isService: false,
      id,
      transaction: store.transaction.bind(store),
      checkpoint: store.checkpoint.bind(store),
      close: store.close.bind(store),
    }
  }
  const journal = id === undefined ? undefined : await openJournal(id, sqliteOptions, io)
  try {
    const store = await context.openOrCreateStore()
    const write = store.write.bind(store)
    return {
      ...journal,
      store,
      isService: true,
      id,
      transaction: journal
        ? (work) => journal.transaction((transaction) => work({ ...transaction, write }))
        : withoutCheckpoint(write),
      close: async () => {
        await store.close()
        await journal?.close()
      },
    }
  } catch (error) {
    await journal?.close()
    throw error
  }
}

/** Undefined without a token, or without the right to read. */
async function openReadable(
  address: HttpAddress,
  context: CommandContext,
): Promise<Store | undefined> {
  const { HttpStore } = await import('../stores/http/http-store.js')
  try {
    const store = await HttpStore.open(address, await context.httpOptions(address))
    if (await store.isReadable()) return store
    await store.close()
  } catch (error) {
    const isWithoutToken =
      error instanceof PlantsError && error.kind === 'unauthorized' && error.status === undefined
    if (!isWithoutToken) throw error
  }
  return undefined
}

function withoutCheckpoint(write: Store['write']): OwnStore['transaction'] {
  return (work) => work({ write, saveCheckpoint: async () => undefined })
}
