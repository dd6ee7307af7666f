import type { ExistsPolicy } from '../stores/common/change.js'
import type { FieldRules } from '../transfer/formats/chunk.js'
import type { Importer } from '../transfer/import/importer.js'
import type { ImportPlan } from '../transfer/import/input.js'
import type { GlobalOptions } from './command.js'

export interface ImportOptions extends GlobalOptions {
  dryRun?: true
  atomic?: true
  format?: ImportPlan['format']
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

/** Input from stdin can be read only once, and all or nothing is not a part. */
export function isResumable({ inputs }: ImportPlan, { dryRun, atomic }: ImportOptions): boolean {
  return !dryRun && !atomic && inputs.every(({ path }) => path !== '-')
}

export function hasStored({ position }: Importer, { dryRun, atomic }: ImportOptions): boolean {
  return !dryRun && !atomic && position.counts.created + position.counts.updated > 0
}

/** Whether what was stored stays when the import ends early. */
export function isKept({ mayHaveStored }: Importer, { dryRun, atomic }: ImportOptions): boolean {
  return mayHaveStored && !dryRun && !atomic
}

/** Whether `--atomic` has undone all. */
export function isRolledBack({ rejected, isDone }: Importer, { atomic }: ImportOptions): boolean {
  return atomic === true && (rejected > 0 || !isDone)
}
