import { PlantsError } from '../../../errors.js'
import { quoteForShell } from '../../../platform/shell.js'
import { findKind } from '../../../stores/kinds.js'
import type { Store } from '../../../stores/store.js'
import type { ImportCopy } from '../../../stores/store-kind.js'
import type { CommandContext } from '../../context.js'
import { createOpenContext } from '../../open-store.js'
import type { ImportReport } from './report.js'

/**
 * Keeps the contents that a store has before an import, so that `plants restore` can bring them
 * back. If they cannot be kept, a warning says so, and the import goes on.
 */
export class ImportUndo {
  #copy: ImportCopy | undefined
  /** The report of the import; undefined while the copy has a temporary name. */
  #report: ImportReport | undefined

  constructor(private readonly context: CommandContext) {}

  /** Copies the contents of the store, if it is a file with plants. */
  async prepare(): Promise<void> {
    const { address, io } = this.context
    const { copyBeforeImport } = findKind(address)
    if (this.#copy || !copyBeforeImport) return
    const copyTime = new Date(io.getTimeMs())
    try {
      this.#copy = await copyBeforeImport(address, {
        ...createOpenContext(this.context),
        copyTime,
      })
    } catch (error) {
      await this.#warnOfFailure(error)
    }
  }

  /** Returns a `write` that gives the copy its name before the first change is sent. */
  keepBefore(write: Store['write'], report: ImportReport): Store['write'] {
    return async (changes, options) => {
      if (this.#copy && !this.#report) await this.#keep(this.#copy, report)
      return write(changes, options)
    }
  }

  async #keep(copy: ImportCopy, report: ImportReport): Promise<void> {
    try {
      // The paths are absolute, so that the command also works in another directory.
      const path = quoteForShell(copy.keep())
      const store = quoteForShell(this.context.address.name)
      this.#report = report
      await report.announceUndo(`plants restore ${path} --store ${store} --yes`)
    } catch (error) {
      copy.discard()
      this.#copy = undefined
      await this.#warnOfFailure(error)
    }
  }

  /**
   * Deletes the copy of an import that did not begin, or has changed nothing. Any other copy takes
   * the place of the oldest one.
   */
  finish(): void {
    if (this.#report?.hasChangedStore) this.#copy?.deleteOlder()
    else this.#copy?.discard()
  }

  async #warnOfFailure(error: unknown): Promise<void> {
    if (!(error instanceof PlantsError) || error.isInterruption) throw error
    await this.context.reporter.warn(`The import cannot be undone: ${error.message}`, 'warning')
  }
}
