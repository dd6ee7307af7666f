import { PlantsError } from '../../../errors.js'
import { quoteForShell } from '../../../platform/shell.js'
import { findKind } from '../../../stores/kinds.js'
import type { Store } from '../../../stores/store.js'
import type { ImportCopy } from '../../../stores/store-kind.js'
import type { CommandContext } from '../../context.js'
import { createOpenContext } from '../../open-store.js'
import type { ImportReport } from './report.js'

type UndoState =
  | { name: 'noCopy' }
  /** The copy has a temporary name. */
  | { name: 'prepared'; copy: ImportCopy }
  | { name: 'kept'; copy: ImportCopy; report: ImportReport }

/**
 * Keeps the contents that a store has before an import, so that `plants restore` can bring them
 * back. If they cannot be kept, a warning says so, and the import goes on.
 */
export class ImportUndo {
  readonly #context: CommandContext
  #state: UndoState = { name: 'noCopy' }

  constructor(context: CommandContext) {
    this.#context = context
  }

  /** Copies the contents of the store, if it is a file with plants. */
  async prepare(): Promise<void> {
    const { address, io } = this.#context
    const { copyBeforeImport } = findKind(address)
    if (this.#state.name !== 'noCopy' || !copyBeforeImport) return
    const copyTime = new Date(io.getTimeMs())
    try {
      const copyContext = { ...createOpenContext(this.#context), copyTime }
      const copy = await copyBeforeImport(address, copyContext)
      if (copy) this.#state = { name: 'prepared', copy }
    } catch (error) {
      await this.#warnOfFailure(error)
    }
  }

  /** Returns a `write` that gives the copy its name before the first change is sent. */
  keepBefore(write: Store['write'], report: ImportReport): Store['write'] {
    return async (changes, options) => {
      await this.#keep(report)
      return write(changes, options)
    }
  }

  async #keep(report: ImportReport): Promise<void> {
    if (this.#state.name !== 'prepared') return
    const { copy } = this.#state
    let path: string
    try {
      path = copy.keep()
    } catch (error) {
      copy.discard()
      this.#state = { name: 'noCopy' }
      return this.#warnOfFailure(error)
    }
    this.#state = { name: 'kept', copy, report }
    // The paths are absolute, so that the command also works in another directory.
    const store = quoteForShell(this.#context.address.name)
    await report.announceUndo(`plants restore ${quoteForShell(path)} --store ${store} --yes`)
  }

  /**
   * Deletes the copy of an import that did not begin, or has changed nothing. Any other copy takes
   * the place of the oldest one.
   */
  finish(): void {
    const state = this.#state
    if (state.name === 'noCopy') return
    const isNeeded = state.name === 'kept' && state.report.hasChangedStore
    if (isNeeded) state.copy.deleteOlder()
    else state.copy.discard()
  }

  async #warnOfFailure(error: unknown): Promise<void> {
    if (!(error instanceof PlantsError) || error.isInterruption) throw error
    await this.#context.reporter.warn(`The import cannot be undone: ${error.message}`, 'warning')
  }
}
