/** How often to repeat what chance decides: `n` times, and in a soak run PLANTS_SOAK times as often. */
export function rounds(n: number): number {
  const factor = Number(process.env['PLANTS_SOAK'] || 1)
  if (!(factor > 0 && factor < Infinity))
    throw new Error(`PLANTS_SOAK must be a positive number, but was ${process.env['PLANTS_SOAK']}`)
  return Math.max(Math.round(n * factor), 1)
}

/** Whether this is a soak run. */
export const isSoak = rounds(10) > 10

/**
 * The next place to look at after one, of places counted from 1: a soak looks at each, a usual run at 1, 3, 9, 27 and
 * so on.
 */
export function nextPlace(place: number): number {
  return isSoak ? place + 1 : place * 3
}

/**
 * What a system call, in strace's words, is made to fail with: a soak tries both errors, a usual run the one that is
 * likelier.
 */
export function errorsOf(call: string): readonly ('EIO' | 'ENOSPC')[] {
  if (isSoak) return ['EIO', 'ENOSPC']
  return call === 'pwrite64' || call === 'ftruncate' ? ['ENOSPC'] : ['EIO']
}
