/** How many records have each outcome. */
export interface Counts {
  created: number
  updated: number
  skipped: number
  unknown: number
  /** How many records were rejected for each `error`, such as `409` for an id that exists. */
  rejected: Record<string, number>
}

export function countRejectedRecords({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

/** Counts the records of which something may be stored. */
export function countStoredRecords({ created, updated, unknown }: Counts): number {
  return created + updated + unknown
}

/** Counts the records that have an outcome. */
export function countFinishedRecords(counts: Counts): number {
  return (
    counts.created + counts.updated + counts.skipped + counts.unknown + countRejectedRecords(counts)
  )
}
