import { expect, test } from 'vitest'
import { describePreview } from '../../../src/cli/commands/import/complete-plan.js'
import { createCounts } from '../../../src/import/counts.js'

test.each([
  { counts: { created: 7 }, numbers: [7] },
  { counts: { created: 6, updated: 2, skipped: 9 }, numbers: [8, 17, 6, 2] },
  { counts: { created: 1, updated: 2, deleted: 3, skipped: 4 }, numbers: [3, 7, 1, 2, 3] },
])('the last question of an import has the numbers $numbers', ({ counts, numbers }) => {
  const preview = { counts: { ...createCounts(), ...counts }, rejectionReason: undefined }
  expect(describePreview(preview).match(/\d+/g)?.map(Number)).toEqual(numbers)
})

test('the last question of an import has the number of rejected records with their reason', () => {
  const counts = { ...createCounts(), created: 286, rejected: { 422: 12 } }
  const question = describePreview({ counts, rejectionReason: 'the id is missing' })
  expect(question.match(/\d+/g)?.map(Number)).toEqual([286, 298, 286, 12])
  expect(question).toContain('the id is missing')
})
