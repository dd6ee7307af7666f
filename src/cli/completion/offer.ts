/** What a word can become. The shell compares it with what is written of the word, each in its own way. */
export interface Offer {
  candidates: Candidate[]
  /** what stands in front of each candidate in the word, such as `--output=` */
  prefix: string
  /** the files that the shell offers besides, in its own way: all, or those with such an ending */
  files: 'none' | 'any' | string[]
}

/** A word that ends with a dot goes on. */
export interface Candidate {
  word: string
  meaning: string
}

export const nothing: Offer = { candidates: [], prefix: '', files: 'none' }

export function offer(candidates: Candidate[]): Offer {
  return { ...nothing, candidates }
}
