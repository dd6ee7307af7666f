import type { ExistsPolicy } from '../../../stores/common/change.js'
import type { FieldRules, InputOptions } from '../../../transfer/formats/chunk.js'
import type { GlobalOptions } from '../../command.js'

export interface ImportOptions extends GlobalOptions {
  dryRun?: true
  atomic?: true
  format?: InputOptions['format']
  sheet?: string
  encoding?: string
  delimiter?: string
  columns?: string[]
  map?: FieldRules['map']
  idFrom?: bigint | 'next'
  match?: 'name'
  ifExists: ExistsPolicy
  maxErrors?: number
  rejects?: string
  restart?: true
  concurrency?: number
  /** In milliseconds. */
  retry?: number
}
