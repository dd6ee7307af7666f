export const versions: string[]
export function fetchNode(version: string, platform?: string): string
