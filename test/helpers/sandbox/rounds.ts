/** How often to repeat what chance decides: `n` times, in a soak PLANTS_SOAK times as often. */
export function countRounds(n: number): number {
  const factor = Number(process.env['PLANTS_SOAK'] || 1)
  if (!(factor > 0 && factor < Infinity)) throw new Error('PLANTS_SOAK must be a positive number')
  return Math.max(Math.round(n * factor), 1)
}

export const isSoak = countRounds(10) > 10

/** The next of the places to look at, from 1: each in a soak, otherwise 1, 3, 9, 27 and so on. */
export function findNextPosition(place: number): number {
  return isSoak ? place + 1 : place * 3
}

/** What a system call, in strace's words, fails with: both in a soak, otherwise the likelier. */
export function listErrorsToInject(call: string): readonly ('EIO' | 'ENOSPC')[] {
  if (isSoak) return ['EIO', 'ENOSPC']
  return call === 'pwrite64' || call === 'ftruncate' ? ['ENOSPC'] : ['EIO']
}

/** Of all that is random in tests: always the same, but in a soak another one, or PLANTS_SEED. */
export const seed = Number(process.env['PLANTS_SEED'] || (isSoak ? Date.now() % 2 ** 31 : 20))
