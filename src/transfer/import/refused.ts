import { idTakenText, Outcome } from '../../stores/conflict.js'
import type { Place, Portion, Problem } from '../formats/portion.js'

/** A record that was refused, or whose fate is not known. */
export interface Refused extends Place {
  /** why: the specification's `error` and `message`; nothing for the rest of the one before, which was too long to be kept */
  why: { error: number; message: string } | undefined
  isUnknown: boolean
}

/**
 * What of a portion was refused, in the order of the input.
 *
 * @param sent how many of its rows had perhaps been sent before to a service that keeps no keys
 */
export function* refusedOf(portion: Portion, sent: number): Generator<Refused> {
  const { problems, outcomes, rows } = portion
  let next = 0
  for (let row = 0; row <= rows.length; row += 1) {
    for (let problem = problems[next]; problem?.row === row; problem = problems[next]) {
      yield ofProblem(problem)
      next += 1
    }
    const outcome = outcomes[row] ?? Outcome.pending
    if (outcome >= Outcome.taken) yield ofRow(portion, row, outcome, sent)
  }
}

export function ofProblem({ start, end, line, error }: Problem): Refused {
  return { start, end, line, why: error, isUnknown: false }
}

function ofRow(portion: Portion, row: number, outcome: number, sent: number): Refused {
  const [start, end, line] = [portion.recordStart[row] ?? 0, portion.recordEnd[row] ?? 0, portion.recordLine[row] ?? 0]
  const error = portion.refusals.get(row)
  const why = error ?? { error: 409, message: idTakenText(portion.rows.idAt(row)) }
  if (outcome !== Outcome.taken || row >= sent) return { start, end, line, why, isUnknown: outcome === Outcome.unknown }
  const message = `${why.message}, perhaps this very one: it was on its way when the import stopped`
  return { start, end, line, why: { error: why.error, message }, isUnknown: true }
}
