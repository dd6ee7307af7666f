import leven from 'leven'

/** At most one letter in three is wrong, and never more than three. */
export function similar(word: string, candidates: readonly string[]): string[] {
  const bare = (text: string) => text.replace(/^--/, '').toLowerCase()
  const near = [...new Set(candidates)].flatMap((candidate) => {
    const distance = editsBetween(bare(word), bare(candidate))
    const length = Math.max(bare(word).length, bare(candidate).length)
    const maximum = Math.max(1, Math.min(3, Math.floor(length / 3)))
    return 2 * distance < length && distance <= maximum ? { candidate, distance } : []
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
