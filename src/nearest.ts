import leven from 'leven'

/** The word that was probably meant, if one is near enough: up to half of its letters are wrong, and three at most. */
export function nearest(word: string, candidates: string[]): string | undefined {
  const ranked = candidates.map((candidate) => ({ candidate, distance: leven(word.toLowerCase(), candidate.toLowerCase()) }))
  const best = ranked.toSorted((a, b) => a.distance - b.distance)[0]
  return best && best.distance <= Math.min(3, Math.floor(best.candidate.length / 2)) ? best.candidate : undefined
}
