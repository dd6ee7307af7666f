/** The endings of spreadsheets. A table in CSV under such a name would open as a damaged file. */
export const spreadsheetEndings = 'xls xlsx xlsm xlsb xltx ods fods numbers'.split(' ')

/**
 * Parses the ending of a file name, which may have `.gz` after it. For `a/list.CSV.gz`, the stem is
 * `a/list`, and the ending is `csv`. The ending of a name without one is empty.
 */
export function parseFileEnding(path: string): { stem: string; ending: string; isGzip: boolean } {
  const unpackedPath = path.replace(/\.gz$/i, '')
  const stem = unpackedPath.replace(/\.\w+$/, '')
  const ending = unpackedPath.slice(stem.length + 1).toLowerCase()
  return { stem, ending, isGzip: unpackedPath !== path }
}
