import type { InputOptions } from '../../../transfer/formats/chunk.js'
import type { ImportPlan } from '../../../transfer/import/input.js'
import type { ContextOptions } from '../../settings-context.js'

export interface ImportOptions extends ContextOptions, Omit<InputOptions, 'map'> {
  map?: InputOptions['map']
  dryRun?: true
  atomic?: true
  maxErrors?: number
  rejects?: string
  restart?: true
}

export type ImportRun = ImportOptions & ImportPlan
