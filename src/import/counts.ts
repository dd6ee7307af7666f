/**
 * How many records have each outcome. No record counts as unknown: if a request gets no response,
 * the import ends, and a resumed import sends the chunk again.
 */
export interface Counts {
  created: number
  updated: number
  skipped: number
  /** How many records were rejected for each `error`, such as `409` for an id that exists. */
  rejected: Record<string, number>
}

export function countRejectedRecords({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

/** Counts the records of which something may be stored. */
export function countStoredRecords({ created, updated }: Counts): number {
  return created + updated
}

/** Counts the records that have an outcome. */
export function countFinishedRecords(counts: Counts): number {
  return countStoredRecords(counts) + counts.skipped + countRejectedRecords(counts)
}
