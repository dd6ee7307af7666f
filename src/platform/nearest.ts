import leven from 'leven'

/** At most one letter in three is wrong, and never more than three. */
export function similar(word: string, candidates: readonly string[]): string[] {
  const bare = (text: string) => text.replace(/^--/, '').toLowerCase()
  const ranked = [...new Set(candidates)].map((candidate) => ({
    candidate,
    distance: editsBetween(bare(word), bare(candidate)),
  }))
  const near = ranked.filter(({ candidate, distance }) => {
    const length = Math.max(bare(word).length, bare(candidate).length)
    return 2 * distance < length && distance <= Math.max(1, Math.min(3, Math.floor(length / 3)))
  })
  const best = Math.min(...near.map(({ distance }) => distance))
  return near.flatMap(({ candidate, distance }) => (distance === best ? candidate : [])).toSorted()
}

/** Two swapped adjacent letters count as one edit. */
function editsBetween(word: string, other: string): number {
  const first = Array.from(word).findIndex((letter, at) => letter !== other[at])
  const swapped = word.slice(0, first) + (word[first + 1] ?? '') + (word[first] ?? '') + word.slice(first + 2)
  return first >= 0 && swapped === other ? 1 : leven(word, other)
}
