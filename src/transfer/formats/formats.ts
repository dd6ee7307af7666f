import { isObject, parseJson } from '../../plant/exact-json.js'
import type { FormatName } from '../../plant/records.js'
import { malformed, type PlantsError, shellWord } from '../../platform/errors.js'
import { csv, tsv } from './csv.js'
import { checkEncoding } from './encoding.js'
import { type EncodingName, type Format, skipSpace } from './format.js'
import { cut, endOfValue, json } from './json-array.js'
import { ndjson } from './line-reader.js'
import type { FieldRules } from './record-mapper.js'

export const formats: Readonly<Record<FormatName, Format>> = { json, ndjson, csv, tsv }

export const headSize = 65_536

/** What is undefined is detected. */
export interface InputOptions {
  format: FormatName | undefined
  /** of a workbook: a name, or a number from 1 */
  sheet: string | undefined
  encoding: EncodingName | undefined
  rules: FieldRules
}

export function formatOf(bytes: Buffer, isLast: boolean, source: string, options: InputOptions): FormatName {
  const { format, encoding, rules } = options
  if (bytes.toString('latin1', 0, 16) === 'SQLite format 3\0') throw databaseError(source)
  checkConvertible(bytes, source)
  const known = format ?? (rules.columns || rules.delimiter ? 'csv' : undefined)
  const start = skipSpace(bytes, 0)
  const head = { bytes, start, isLast }
  // The table has exactly these keys.
  const found = known ?? (Object.keys(formats) as FormatName[]).find((one) => formats[one].detect(head))
  const isTable = found === 'csv' || found === 'tsv'
  if (encoding === undefined && (isTable || known === undefined)) checkEncoding(bytes, { isLast, isTable, source })
  if (found === undefined)
    throw malformed(`${source} is not CSV, TSV, NDJSON or JSON`, 'See the formats: plants help formats')
  const path = isTable || known !== undefined ? undefined : pathToPlants(bytes, start, rules)
  if (path !== undefined)
    throw malformed(
      `${source} is an object with the plants at ${path}`,
      `Instead, ${importOutputOf(`jq -c ${shellWord(`${path}[]`)}`, source)}`,
    )
  return found
}

/** Part of a hint. The command reads stdin if the import did. */
export function importOutputOf(command: string, source: string): string {
  const argument = source === 'stdin' ? '' : ` ${shellWord(source.startsWith('-') ? `./${source}` : source)}`
  return `import the output of: ${command}${argument}`
}

function checkConvertible(bytes: Buffer, source: string): void {
  const head = bytes.toString('hex', 0, 16)
  if (head.startsWith('d0cf11e0'))
    throw malformed(
      `${source} is a workbook of an old Excel (.xls), or has a password`,
      'Save it as .xlsx, without one',
    )
  const found = convertible.find((one) => one.head.test(head))
  if (found)
    throw malformed(
      `${source} ${found.what}, which plants does not read`,
      `Instead, ${importOutputOf(found.command, source)}`,
    )
}

/** by first bytes in hexadecimal; UTF-32 with a byte order mark, or a first character of ASCII */
const convertible = [
  { head: /^fd377a585a00/, what: 'is compressed with xz', command: 'xz -dc' },
  { head: /^425a683[1-9]314159265359/, what: 'is compressed with bzip2', command: 'bzip2 -dc' },
  { head: /^(fffe0000|(?!00)..000000)/, what: 'is UTF-32', command: 'iconv -f UTF-32LE -t UTF-8' },
  { head: /^(0000feff|000000(?!00)..)/, what: 'is UTF-32', command: 'iconv -f UTF-32BE -t UTF-8' },
]

function databaseError(source: string): PlantsError {
  const isFile = source !== 'stdin' && !/\.(gz|zst)$/i.test(source)
  // a word would be the name of a store
  const path = isFile ? shellWord(/[/\\]/.test(source) ? source : `./${source}`) : 'FILE'
  const save = isFile ? '' : ' save it to a file without compression, then'
  const hint = `If it is a store,${save} import the output of: plants export --store ${path}`
  return malformed(`${source} contains an SQLite database, not records`, hint)
}

/** The jq path of the array of objects in an object that is not a plant, such as `.data.plants`. */
function pathToPlants(bytes: Buffer, start: number, { map }: FieldRules): string | undefined {
  const keys = [map.id || 'id', map.name || 'name']
  const end = endOfValue(bytes, start, bytes.length)
  let rest = bytes.toString('utf8', start, end === cut ? bytes.length : end)
  if (end !== cut && mayBePlant(parseJson(rest), keys)) return undefined
  let path = ''
  for (;;) {
    const [whole, key, bracket] = wrapped.exec(rest) ?? []
    if (whole === undefined || keys.some((name) => whole.includes(JSON.stringify(name)))) return undefined
    path += `.${/^[a-z_]\w*$/i.test(key ?? '') ? key : `"${key}"`}`
    if (bracket !== undefined) return path
    rest = rest.slice(whole.length)
  }
}

function mayBePlant(parsed: ReturnType<typeof parseJson>, keys: string[]): boolean {
  return !('value' in parsed) || keys.some((key) => isObject(parsed.value) && Object.hasOwn(parsed.value, key))
}

/** The first member that is an object or an array of objects, after scalars. */
const wrapped = /^\s*\{(?:\s*"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[-+.\w]+)\s*,)*\s*"([^"\\]*)"\s*:\s*(?:(\[)\s*)?(?=\{)/
