import { PlantsError } from '../platform/errors.js'
import { completeAddress, isOwn } from '../stores/common/address.js'
import type { OwnStore, Store } from '../stores/common/store.js'
import type { Right } from '../stores/common/tokens.js'
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
  context: CommandContext,
): Promise<OpenTarget> {
  const { address, sqliteOptions, reporter, io } = context
  if (options.dryRun) {
    const { store, isReadable } = options.match
      ? { store: await (await context.opener()).openExisting(), isReadable: true } // it must be
      : await openToCompare(context)
    if (!isReadable) await reporter.warn(`Only the input is checked, not which ids exist at ${address.name}`)
    const { write, close } = dryRunOf(store, isReadable, (changes) => report.writeChanges(changes))
    return { store, isService: false, id: undefined, transaction: withoutCheckpoint(write), close }
  }
  const paths = plan.inputs.map(({ path }) => path)
  const id = paths.includes('-') ? undefined : checkpointId(completeAddress(address), paths)
  if (isOwn(address)) {
    const store = await (await context.ownOpener()).open()
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
  const needs: Right[] = options.ifExists === 'update' ? ['update'] : []
  const journal = id === undefined ? undefined : await openJournal(id, sqliteOptions, io)
  try {
    const store = await context.createStore(needs)
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

/** For a dry run. There may be no store yet, no token for a service, or no right to read it. */
async function openToCompare(context: CommandContext): Promise<{ store: Store | undefined; isReadable: boolean }> {
  const { address } = context
  if (isOwn(address)) return { store: await (await context.ownOpener()).openExisting(), isReadable: true }
  const { HttpStore } = await import('../stores/http/http-store.js')
  try {
    const store = await HttpStore.open(address, await context.httpOptions(address))
    if (await store.isReadable()) return { store, isReadable: true }
    await store.close()
  } catch (error) {
    const isWithoutToken = error instanceof PlantsError && error.type === 'unauthorized' && error.status === undefined
    if (!isWithoutToken) throw error
  }
  return { store: undefined, isReadable: false }
}

function withoutCheckpoint(write: Store['write']): OwnStore['transaction'] {
  return (work) => work({ write, saveCheckpoint: async () => undefined })
}
