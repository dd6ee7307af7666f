import { PlantsError } from '../errors.js'
import { idTaken, Outcome } from '../stores/store.js'
import type { Place, Portion } from './portion.js'

/** A record that was refused, or whose fate is not known. */
export interface Refused extends Place {
  /** nothing for the rest of the one before, which was too long to be kept */
  error: PlantsError | undefined
  isUnknown: boolean
}

/**
 * What of a portion was refused, in the order of the input.
 *
 * @param sent how many of its rows had perhaps been sent before to a service that keeps no keys
 */
export function refusedOf(portion: Portion, sent: number): Refused[] {
  const refused: Refused[] = []
  const { problems, outcomes, rows } = portion
  let next = 0
  for (let row = 0; row <= rows.length; row += 1) {
    for (let problem = problems[next]; problem?.row === row; problem = problems[next]) {
      refused.push({ ...problem, isUnknown: false })
      next += 1
    }
    const outcome = outcomes[row] ?? Outcome.pending
    if (outcome >= Outcome.taken) refused.push({ ...placeOf(portion, row), ...explain(portion, row, outcome, sent) })
  }
  return refused
}

function placeOf({ recordStart, recordEnd, recordLine }: Portion, row: number): Place {
  return { start: recordStart[row] ?? 0, end: recordEnd[row] ?? 0, line: recordLine[row] ?? 0 }
}

function explain({ rows, refusals }: Portion, row: number, outcome: number, sent: number): Pick<Refused, 'error' | 'isUnknown'> {
  const error = refusals.get(row) ?? idTaken(rows.idAt(row))
  if (outcome !== Outcome.taken || row >= sent) return { error, isUnknown: outcome === Outcome.unknown }
  const message = `${error.message}, perhaps this very one: it was on its way when the import stopped`
  return { error: new PlantsError('conflict', message), isUnknown: true }
}
