import type { CreateManyOptions } from '../../stores/store.js'
import type { FormatName } from '../formats/format-names.js'
import type { FieldRules } from '../formats/intake.js'

/** What a person asked for. */
export interface ImportOrder {
  plan: ImportPlan
  /** absolute */
  rejects: string | undefined
  /** absolute; false for none, undefined for the usual place */
  journal: string | false | undefined
  isRestart: boolean
  /** only to look whether it would work, or to do all of it at once */
  staging: 'check' | 'atomic' | undefined
  /** requests in flight, and a second */
  concurrency: number | undefined
  rate: number | undefined
}

/** What an import is to do. */
export interface ImportPlan {
  inputs: Input[]
  /** recognised by content where it is not given */
  format: FormatName | undefined
  rules: FieldRules
  ifExists: CreateManyOptions['ifExists']
  /** whether it stops before the first that is refused, and goes on there */
  stopsAtRefusal: boolean
  /** it stops soon after so many were refused */
  maxErrors: number
}

export interface Input {
  /** absolute, or "-" for stdin */
  path: string
  /** what people call it */
  name: string
}
