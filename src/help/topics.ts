/** A page that `plants help` shows besides those of the commands. */
export interface Topic {
  name: string
  meaning: string
  page(): Promise<string>
}

export const topics: Topic[] = [
  {
    name: 'environment',
    meaning: 'every setting and variable, and which wins',
    page: async () => (await import('./environment.js')).environment(),
  },
]
