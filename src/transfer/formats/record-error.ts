import { errorValue, type Kind } from '../../platform/errors.js'

/** Why a record is no NewPlant. It is no Error: an input can have millions of them, and a stack takes a kilobyte. */
export class RecordError {
  readonly kind: Kind
  readonly message: string

  constructor(kind: Kind, message: string) {
    this.kind = kind
    this.message = message
  }

  /** the specification's `error` */
  get error(): number {
    return errorValue(this.kind)
  }
}
