import type { Block, RecordKind } from '../../stores/store.js'
import { type FormatName, formatNames } from '../formats/format-names.js'

/** How plants stand in a text. */
export interface ExportFormat {
  record: RecordKind
  head: string
  between: string
  foot: string
}

export const exportFormats: Record<FormatName, ExportFormat> = {
  ndjson: { record: 'json', head: '', between: '\n', foot: '' },
  json: { record: 'json', head: '[\n', between: ',\n', foot: ']\n' },
  csv: { record: 'csv', head: 'id,name,tag\n', between: '\n', foot: '' },
  tsv: { record: 'tsv', head: 'id\tname\ttag\n', between: '\n', foot: '' },
}

/** The format that the name of a file stands for, also of a compressed one; NDJSON when it stands for none. */
export function formatOfName(path: string): FormatName {
  return formatNames.find((name) => name === endOf(path)) ?? 'ndjson'
}

/** The end of a name that looks like that of a format, and of which none is known: `.cvs`. */
export function unknownEnd(path: string): string | undefined {
  const end = endOf(path)
  const isKnown = end === undefined || /^(txt|jsonl|gz|zst|bak|out|tmp|\d+)$/.test(end) || formatNames.some((name) => name === end)
  return isKnown ? undefined : `.${end}`
}

function endOf(path: string): string | undefined {
  return /[^/\\]\.(\w+)(?:\.(?:gz|zst))?$/i.exec(path)?.[1]?.toLowerCase()
}

/** Makes one text of all blocks. */
export async function* toDocument(blocks: AsyncIterable<Block>, { head, between, foot }: ExportFormat): AsyncGenerator<Block> {
  let isEmpty = true
  if (head !== '') yield { text: head, plants: 0 }
  for await (const { text, plants } of blocks) {
    yield { text: isEmpty ? text : between + text, plants }
    isEmpty = false
  }
  yield { text: isEmpty ? foot : `\n${foot}`, plants: 0 }
}
