import { expect, test } from 'vitest'
import { createFullDiskError } from '../../../../src/stores/sqlite/full-disk.js'

test.each([
  { neededBytes: 36_864, freeBytes: 0, sizes: 'about 36 KiB, and 0 KiB are free' },
  { neededBytes: 2_621_440, freeBytes: 1_048_576, sizes: 'about 2.5 MiB, and 1.0 MiB are free' },
])('the error of a full disk says $sizes', ({ neededBytes, freeBytes, sizes }) => {
  const { message } = createFullDiskError('x', { neededBytes, freeBytes, cause: undefined })
  expect(message).toBe(`x could not be written: its disk is full. It needs ${sizes}`)
})
