/*
 * Saves the entries of an import in the table `imports`. An entry has an id and a state, which is a
 * string. One entry is the checkpoint, and there is one for each file that is remembered.
 *
 * An entry is replaced only if it still has the state that this process has read or saved. If
 * another process has resumed the same import in the meantime, the entry has another state, and the
 * transaction fails. Only this check prevents two processes from running the same import.
 */
import type { ImportEntryChange, Transaction } from '../stores/store.js'
import type { ImportStart, ImportTarget } from './import-start.js'
import type { Checkpoint, Position } from './parse-checkpoint.js'
import type { SavedImport } from './resume.js'

export class ImportEntries {
  readonly #checkpointStore: ImportTarget['checkpointStore']
  readonly #savedImport: SavedImport
  readonly #checkpoint: Checkpoint
  /** The id of the checkpoint; undefined for an import that cannot be resumed. */
  readonly #checkpointId: string | undefined
  /** The state of each entry by its id; undefined for an entry that does not exist. */
  readonly #states = new Map<string, string | undefined>()

  constructor({ plan, target, savedImport, checkpoint }: ImportStart) {
    this.#checkpointStore = target.checkpointStore
    this.#savedImport = savedImport
    this.#checkpoint = target.send ? countRun(checkpoint) : checkpoint
    this.#checkpointId = plan.atomic ? undefined : savedImport.id
    for (const { id, checkpointId } of savedImport.rememberedFiles)
      this.#states.set(id, checkpointId)
    if (savedImport.id !== undefined) this.#states.set(savedImport.id, savedImport.state)
  }

  get isResumable(): boolean {
    return this.#checkpointId !== undefined
  }

  get hasCheckpoint(): boolean {
    const id = this.#checkpointId
    return id !== undefined && this.#states.get(id) !== undefined
  }

  /**
   * Builds the change of the checkpoint, which is saved in the same transaction as the plants.
   *
   * @param position undefined to delete the checkpoint
   * @returns one change, or none if the import cannot be resumed, or the checkpoint has the
   * position already
   */
  buildCheckpointChange(position: Position | undefined): ImportEntryChange[] {
    const state = position && JSON.stringify({ ...this.#checkpoint, position })
    return this.#buildChange(this.#checkpointId, state)
  }

  /**
   * Builds the change of the entry that says which import generated ids for a file.
   *
   * @param input the index of the file
   * @returns one change, or none if the entry says so already
   */
  buildFileChange(input: number): ImportEntryChange[] {
    const { id, rememberedFiles } = this.#savedImport
    const file = rememberedFiles[input]
    return file ? this.#buildChange(file.id, id) : []
  }

  #buildChange(id: string | undefined, newState: string | undefined): ImportEntryChange[] {
    if (id === undefined) return []
    const expectedState = this.#states.get(id)
    return expectedState === newState ? [] : [{ id, expectedState, newState }]
  }

  /** Saves the checkpoint in a transaction without plants. */
  async saveCheckpoint(position: Position | undefined): Promise<void> {
    for (const change of this.buildCheckpointChange(position)) await this.save(change)
  }

  async save(change: ImportEntryChange): Promise<void> {
    await this.#checkpointStore.transaction(({ saveImportEntry }) => saveImportEntry(change))
    this.noteSavedChange(change)
  }

  /**
   * Saves that nothing of the import is stored: the checkpoint says so, and the files that this
   * process has remembered are forgotten. Both are one transaction. So if another process has
   * resumed the import, which may store something, neither changes.
   */
  async saveThatNothingIsStored(position: Position): Promise<void> {
    const changes = this.buildCheckpointChange({ ...position, isNothingStored: true })
    changes.push(...this.#buildForgettingChanges())
    await this.#checkpointStore.transaction((transaction) => saveEntries(changes, transaction))
    for (const change of changes) this.noteSavedChange(change)
  }

  /** Builds the changes after which the entries about files are as this process has found them. */
  #buildForgettingChanges(): ImportEntryChange[] {
    // Two files with the same contents have one entry.
    const earlierStates = new Map(
      this.#savedImport.rememberedFiles.map(({ id, checkpointId }) => [id, checkpointId]),
    )
    return [...earlierStates].flatMap(([id, checkpointId]) => this.#buildChange(id, checkpointId))
  }

  /** Notes the new state of an entry. It must be called after the commit. */
  noteSavedChange({ id, newState }: ImportEntryChange): void {
    this.#states.set(id, newState)
  }
}

function countRun(checkpoint: Checkpoint): Checkpoint {
  return { ...checkpoint, runs: (checkpoint.runs ?? 0) + 1 }
}

/** Saves changes in a transaction. After the commit, each must be given to `noteSavedChange`. */
export async function saveEntries(
  changes: readonly ImportEntryChange[],
  { saveImportEntry }: Transaction,
): Promise<void> {
  for (const change of changes) await saveImportEntry(change)
}
