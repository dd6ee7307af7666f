import type { InputOptions } from '../../../transfer/formats/chunk.js'
import type { ImportPlan } from '../../../transfer/import/input.js'
import type { GlobalOptions } from '../../command.js'

export interface ImportOptions extends GlobalOptions, Omit<InputOptions, 'map'> {
  map?: InputOptions['map']
  dryRun?: true
  atomic?: true
  maxErrors?: number
  rejects?: string
  restart?: true
  concurrency?: number
  /** In milliseconds. */
  retry?: number
}

/** The options, and what they make of the inputs. */
export type ImportRun = ImportOptions & ImportPlan
