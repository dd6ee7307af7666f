import type { FormatName } from './format-names.js'

export function recognise(_head: Buffer, _isLast: boolean): FormatName {
  return 'ndjson'
}
