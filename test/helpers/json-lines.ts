/** The objects of a text that has one a line. */
export function objectsOf(text: string): Record<string, unknown>[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}
