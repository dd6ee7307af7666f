import type { OwnStore, Store } from '../stores/common/store.js'
import type { Right } from '../stores/common/tokens.js'
import { completeAddress, isOwn, openToCompare, ownSchemeOf, schemeOf } from '../stores/registry.js'
import { checkpointId } from '../transfer/import/checkpoint.js'
import { dryRunOf } from '../transfer/import/dry-run.js'
import type { ImportTarget } from '../transfer/import/importer.js'
import type { ImportPlan } from '../transfer/import/input.js'
import { openJournal } from '../transfer/import/journal.js'
import type { CommandContext } from './command-context.js'
import type { ImportOptions, ImportReport } from './import-report.js'

export interface OpenTarget extends ImportTarget, Partial<Pick<OwnStore, 'checkpoint' | 'flush'>> {
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
  { address, storeOptions, reporter, io }: CommandContext,
): Promise<OpenTarget> {
  if (options.dryRun) {
    const { store, isReadable } = options.match
      ? { store: await schemeOf(address).openExisting(address, storeOptions), isReadable: true } // it must be
      : await openToCompare(address, storeOptions)
    if (!isReadable) await reporter.warn(`Only the input is checked, not which ids exist at ${address.name}`)
    const { write, close } = dryRunOf(store, isReadable, (changes) => report.writeChanges(changes))
    return { store, isService: false, id: undefined, transaction: withoutCheckpoint(write), close }
  }
  const paths = plan.inputs.map(({ path }) => path)
  const id = paths.includes('-') ? undefined : checkpointId(completeAddress(address), paths)
  const needs: Right[] = options.ifExists === 'update' ? ['update'] : []
  if (isOwn(address)) {
    const store = await ownSchemeOf(address).open(address, { ...storeOptions, needs })
    return {
      store,
      isService: false,
      id,
      transaction: store.transaction.bind(store),
      checkpoint: store.checkpoint.bind(store),
      flush: store.flush.bind(store),
      close: store.close.bind(store),
    }
  }
  const journal = id === undefined ? undefined : await openJournal(id, storeOptions, io)
  try {
    const store = await schemeOf(address).open(address, { ...storeOptions, needs })
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

function withoutCheckpoint(write: Store['write']): OwnStore['transaction'] {
  return (work) => work({ write, saveCheckpoint: async () => undefined })
}
