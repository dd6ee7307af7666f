import { PlantsError } from '../../platform/errors.js'

/** The states of a checkpoint: undefined is none. */
export interface CheckpointChange {
  id: string
  from: string | undefined
  to: string | undefined
}

/** A store keeps the newest so many checkpoints of complete imports. */
export const maxDone = 100
/** How the state of a complete import begins. The time follows, so that the greatest state is the newest. */
export const donePrefix = '{"done":"'

export function doneState(time: Date): string {
  return JSON.stringify({ done: time.toISOString() })
}

/** Not retryable: the import goes on in the other process. */
export class CheckpointMovedError extends PlantsError {
  constructor() {
    const message = 'Another plants process is importing the same inputs into this store'
    super('inaccessible', message, { hint: 'Wait for it' })
  }
}
