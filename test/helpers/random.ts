import { isSoak } from './rounds.js'

/**
 * Where all that is random in tests begins: the same each time, but in a soak another one, unless PLANTS_SEED gives it.
 * A test that fails says which it was.
 */
export const seed = Number(process.env['PLANTS_SEED'] || (isSoak ? Date.now() % 2 ** 31 : 20))

/** Numbers in [0, 1), by mulberry32. */
export function randomOf(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
