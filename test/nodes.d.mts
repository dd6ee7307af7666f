/** The versions of Node that the program runs on, as npm names their ranges. */
export const versions: string[]
/** Brings a Node into a cache folder, and gives the path of the executable. */
export function fetchNode(version: string, platform?: string): string
