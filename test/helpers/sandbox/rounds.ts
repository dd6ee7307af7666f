/** Counts the rounds of a random test: `n`, and in a soak test PLANTS_SOAK times as many. */
export function scaleRounds(n: number): number {
  const factor = Number(process.env['PLANTS_SOAK'] || 1)
  if (!(factor > 0 && factor < Infinity)) throw new Error('PLANTS_SOAK must be a positive number')
  return Math.max(Math.round(n * factor), 1)
}

export const isSoak = scaleRounds(10) > 10

/** Returns the next position to test: in a soak test the next one, otherwise 1, 3, 9, 27 … */
export function findNextPosition(position: number): number {
  return isSoak ? position + 1 : position * 3
}

/** Lists the errors of a system call to test: both in a soak test, otherwise the likelier one. */
export function listErrorsToInject(call: string): readonly ('EIO' | 'ENOSPC')[] {
  if (isSoak) return ['EIO', 'ENOSPC']
  return call === 'pwrite64' || call === 'ftruncate' ? ['ENOSPC'] : ['EIO']
}

/** The seed of all random values: the same each time, but in a soak test PLANTS_SEED or another. */
export const seed = Number(process.env['PLANTS_SEED'] || (isSoak ? Date.now() % 2 ** 31 : 20))
