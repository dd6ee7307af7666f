import {
  type Counts,
  countFinishedRecords,
  countRejectedRecords,
  countStoredRecords,
} from '../../import/counts.js'
import { formatPlantCount, groupDigits } from '../../plant/plant.js'

/** What an import would do. */
export interface ImportPreview {
  counts: Readonly<Counts>
  /** The most frequent reason of the rejected records; undefined if none is rejected. */
  rejectionReason: string | undefined
}

/**
 * Describes what an import would do, with all numbers: `288 of 300 plants (286 new, 2 changed; 12
 * rejected: the id is missing)`.
 */
export function describePreview({ counts, rejectionReason }: ImportPreview): string {
  const { created, updated, deleted } = counts
  const total = countFinishedRecords(counts)
  const stored = countStoredRecords(counts)
  if (created === total && deleted === 0) return formatPlantCount(total)
  const subject = stored === total ? '' : `${groupDigits(stored)} of `
  const changes = Object.entries({ new: created, changed: updated, deleted })
    .filter(([, count]) => count > 0)
    .map(([word, count]) => `${groupDigits(count)} ${word}`)
  const rejected = countRejectedRecords(counts)
  const rejections = rejected > 0 ? [`${groupDigits(rejected)} rejected: ${rejectionReason}`] : []
  return `${subject}${formatPlantCount(total)} (${[changes.join(', '), ...rejections].join('; ')})`
}
