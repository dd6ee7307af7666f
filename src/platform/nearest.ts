import leven from 'leven'

/** The words nearest to one, with one letter in three wrong at most, and never more than three. Case, and dashes at the beginning, do not count. */
export function similar(word: string, candidates: readonly string[]): string[] {
  const bare = (text: string) => text.replace(/^--/, '').toLowerCase()
  const ranked = [...new Set(candidates)].map((candidate) => ({ candidate, distance: distanceOf(bare(word), bare(candidate)) }))
  const near = ranked.filter(({ candidate, distance }) => {
    const length = Math.max(bare(word).length, bare(candidate).length)
    return 2 * distance < length && distance <= Math.max(1, Math.min(3, Math.floor(length / 3)))
  })
  const best = Math.min(...near.map(({ distance }) => distance))
  return near.flatMap(({ candidate, distance }) => (distance === best ? candidate : [])).toSorted()
}

/** Two letters that changed places are one mistake. */
function distanceOf(word: string, other: string): number {
  const first = Array.from(word).findIndex((letter, at) => letter !== other[at])
  const swapped = word.slice(0, first) + (word[first + 1] ?? '') + (word[first] ?? '') + word.slice(first + 2)
  return first >= 0 && swapped === other ? 1 : leven(word, other)
}
