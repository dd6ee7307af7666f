import type { Topic } from '../spec.js'

export const topics: Topic[] = [
  {
    name: 'environment',
    meaning: 'every setting and variable, and which wins',
    page: async (width) => (await import('./environment.js')).environment(width),
  },
  {
    name: 'exit-codes',
    meaning: 'what a run can end with, and when',
    page: async (width) => (await import('./exit-codes.js')).exitCodesPage(width),
  },
  {
    name: 'formats',
    meaning: 'what plants, answers and errors look like',
    page: async (width) => (await import('./formats.js')).formats(width),
  },
]

/** The topic that words name behind `help`. */
export function topicOf([word, ...others]: string[]): Topic | undefined {
  return others.length === 0 ? topics.find(({ name }) => name === word) : undefined
}
