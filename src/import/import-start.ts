import type { DirectStore, Store } from '../stores/store.js'
import type { ImportPlan } from './inputs.js'
import type { PlantNames } from './map-record.js'
import type { Checkpoint } from './parse-checkpoint.js'
import type { SavedImport } from './resume.js'

/** The stores to which an import sends its changes, and in which it keeps its checkpoint. */
export interface ImportTarget {
  /** Sends changes to a service; undefined for a direct store, which writes them itself. */
  send?: Store['write']
  /**
   * The direct store itself, or the journal of a service. It keeps the checkpoint, and each chunk
   * is one of its transactions. If no checkpoint is kept, as in a dry run, it has no
   * `findImportEntry`.
   */
  checkpointStore: Pick<DirectStore, 'transaction'> &
    Partial<Pick<DirectStore, 'findImportEntry' | 'close'>>
  /** The store to read from; undefined if there is none yet, and for a dry run at a service. */
  store?: Pick<Store, 'read' | 'close'>
}

/** Everything that an `Importer` needs to run an import. */
export interface ImportStart {
  plan: ImportPlan
  target: ImportTarget
  savedImport: SavedImport
  /** The checkpoint from which the import begins or resumes. */
  checkpoint: Checkpoint
  /** The plants that are found by their names; undefined without `--match name`. */
  names: PlantNames | undefined
}
