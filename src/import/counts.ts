/** How many records have each outcome. */
export interface Counts {
  created: number
  updated: number
  skipped: number
  /** How many records were rejected for each `error`, such as `409` for an id that exists. */
  rejected: Record<string, number>
  /** How many records were sent, and have no answer that says whether they are stored. */
  unknown: number
}

export function createCounts(): Counts {
  return { created: 0, updated: 0, skipped: 0, rejected: {}, unknown: 0 }
}

export function countRejectedRecords({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

/** Counts the records of which something is stored. */
export function countStoredRecords({ created, updated }: Counts): number {
  return created + updated
}

/** Counts the records that have an outcome. */
export function countFinishedRecords(counts: Counts): number {
  return countStoredRecords(counts) + counts.skipped + countRejectedRecords(counts)
}
