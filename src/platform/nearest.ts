import leven from 'leven'

/** The word that was probably meant, if one is near enough: up to half of its letters are wrong, and three at most. */
export function nearest(word: string, candidates: string[]): string | undefined {
  const ranked = candidates.map((candidate) => ({ candidate, distance: leven(word.toLowerCase(), candidate.toLowerCase()) }))
  const best = ranked.toSorted((a, b) => a.distance - b.distance)[0]
  return best && best.distance <= Math.min(3, Math.floor(best.candidate.length / 2)) ? best.candidate : undefined
}

/** The words nearest to one, of those of which less than half is wrong, and three letters at most. Dashes at the beginning do not count. */
export function similar(word: string, candidates: string[]): string[] {
  const bare = (text: string) => text.replace(/^--/, '')
  const ranked = [...new Set(candidates)].map((candidate) => ({ candidate, distance: distanceOf(bare(word), bare(candidate)) }))
  const near = ranked.filter(({ candidate, distance }) => {
    const length = Math.max(bare(word).length, bare(candidate).length)
    return distance <= 3 && length - distance > 0.4 * length
  })
  const best = near.reduce((least, { distance }) => Math.min(least, distance), 3)
  return near.flatMap(({ candidate, distance }) => (distance === best ? candidate : [])).toSorted()
}

/** Two letters that changed places are one mistake. */
function distanceOf(word: string, other: string): number {
  const first = Array.from(word).findIndex((letter, at) => letter !== other[at])
  const swapped = word.slice(0, first) + (word[first + 1] ?? '') + (word[first] ?? '') + word.slice(first + 2)
  return first >= 0 && swapped === other ? 1 : leven(word, other)
}
