/*
 * Saves the rows of an import: its checkpoint, and a row for each file that is remembered.
 *
 * A row is replaced only if it still has what this process has read or saved there. If another
 * process has resumed the same import in the meantime, the row has another text, and the
 * transaction fails. Nothing else keeps two processes with the same import apart.
 */
import type { CheckpointChange } from '../stores/store.js'
import type { ImportStart, ImportTarget } from './import-start.js'
import type { Checkpoint, Position } from './parse-checkpoint.js'
import type { SavedImport } from './resume.js'

export class CheckpointRows {
  readonly #checkpointStore: ImportTarget['checkpointStore']
  readonly #saved: SavedImport
  readonly #checkpoint: Checkpoint
  /** The row of the checkpoint; undefined for an import that cannot be resumed. */
  readonly #id: string | undefined
  /** The text of each row, by its id; undefined for a row that does not exist. */
  readonly #states = new Map<string, string | undefined>()

  constructor({ plan, target, saved, checkpoint }: ImportStart) {
    this.#checkpointStore = target.checkpointStore
    this.#saved = saved
    this.#checkpoint = checkpoint
    this.#id = plan.atomic ? undefined : saved.id
    for (const { id, checkpointId } of saved.rememberedFiles) this.#states.set(id, checkpointId)
    if (saved.id !== undefined) this.#states.set(saved.id, saved.state)
  }

  get isResumable(): boolean {
    return this.#id !== undefined
  }

  get hasCheckpoint(): boolean {
    const id = this.#id
    return id !== undefined && this.#states.get(id) !== undefined
  }

  /**
   * Builds the change of the checkpoint, which a transaction saves with its plants. Like every
   * change here, it is a list of one, or an empty list if there is nothing to save.
   *
   * @param position undefined to delete the checkpoint
   * @returns no change if the import cannot be resumed, or the checkpoint has the position already
   */
  buildCheckpointChange(position: Position | undefined): CheckpointChange[] {
    const state = position && JSON.stringify({ ...this.#checkpoint, position })
    return this.#buildChange(this.#id, state)
  }

  /**
   * Builds the change of the row that says which import generated ids for the records of a file.
   *
   * @param input the index of the file
   * @returns no change if the row says so already
   */
  buildFileChange(input: number): CheckpointChange[] {
    const { id, rememberedFiles } = this.#saved
    const file = rememberedFiles[input]
    return file ? this.#buildChange(file.id, id) : []
  }

  #buildChange(id: string | undefined, to: string | undefined): CheckpointChange[] {
    if (id === undefined) return []
    const from = this.#states.get(id)
    return from === to ? [] : [{ id, from, to }]
  }

  /** Saves the checkpoint in a transaction without plants. */
  async saveCheckpoint(position: Position | undefined): Promise<void> {
    for (const change of this.buildCheckpointChange(position)) await this.save(change)
  }

  async save(change: CheckpointChange): Promise<void> {
    await this.#checkpointStore.transaction(({ saveCheckpoint }) => saveCheckpoint(change))
    this.noteSaved(change)
  }

  /** Notes a change when the transaction that has saved it is committed. */
  noteSaved({ id, to }: CheckpointChange): void {
    this.#states.set(id, to)
  }
}
