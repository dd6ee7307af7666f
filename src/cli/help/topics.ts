import type { Topic } from '../define-command.js'

export const topics: readonly Topic[] = [
  {
    name: 'environment',
    meaning: 'every setting and variable, and which wins',
    page: async (width) => (await import('./topic-pages.js')).environmentPage(width),
  },
  {
    name: 'exit-codes',
    meaning: 'what a run can end with, and when',
    page: async (width) => (await import('./topic-pages.js')).exitCodesPage(width),
  },
  {
    name: 'formats',
    meaning: 'what plants, answers and errors look like',
    page: async (width) => (await import('./topic-pages.js')).formatsPage(width),
  },
]
