import leven from 'leven'

/** The word that was probably meant, if one is near enough: a letter or two are wrong, or a third of a long word. */
export function nearest(word: string, candidates: string[]): string | undefined {
  const ranked = candidates.map((candidate) => ({ candidate, distance: leven(word.toLowerCase(), candidate.toLowerCase()) }))
  const best = ranked.toSorted((a, b) => a.distance - b.distance)[0]
  return best && best.distance <= Math.max(1, Math.floor(best.candidate.length / 3)) ? best.candidate : undefined
}
