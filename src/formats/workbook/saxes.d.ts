/*
 * Declares what this program uses of saxes, whose own types do not compile with
 * `exactOptionalPropertyTypes`.
 */
interface Tag {
  name: string
  attributes: Record<string, string>
}

export declare class SaxesParser {
  constructor(options: { position: boolean })
  /** While a handler runs, this is how many UTF-16 units the parser has read. */
  readonly position: number
  on(event: 'opentag' | 'closetag', handler: (tag: Tag) => void): void
  on(event: 'text' | 'cdata' | 'comment' | 'doctype', handler: (text: string) => void): void
  on(event: 'xmldecl', handler: (declaration: { encoding?: string }) => void): void
  on(event: 'error', handler: (error: Error) => void): void
  write(text: string): void
  close(): void
}
