// Writes src/formats/encoding-aliases.ts: the names that `--encoding` takes, each with the decoder
// that reads it. People take such names from Python, from iconv and from Excel, so the names are
// those of Python's codecs, of iconv-lite and of the code pages of Windows. If two of these sources
// have a name for different encodings, the Encoding Standard (https://encoding.spec.whatwg.org)
// decides. With `--check`, nothing is written: the file is printed if it would change.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/** The names that Excel and .NET show for the code pages of Windows. */
const windowsNames = {
  437: 'OEM United States',
  708: 'Arabic (ASMO 708)',
  720: 'Arabic (DOS)',
  737: 'Greek (DOS)',
  775: 'Baltic (DOS)',
  850: 'Western European (DOS)',
  852: 'Central European (DOS)',
  855: 'OEM Cyrillic',
  857: 'Turkish (DOS)',
  858: 'OEM Multilingual Latin I',
  860: 'Portuguese (DOS)',
  861: 'Icelandic (DOS)',
  862: 'Hebrew (DOS)',
  863: 'French Canadian (DOS)',
  864: 'Arabic (864)',
  865: 'Nordic (DOS)',
  866: 'Cyrillic (DOS)',
  869: 'Greek, Modern (DOS)',
  874: 'Thai (Windows)',
  932: 'Japanese (Shift-JIS)',
  936: 'Chinese Simplified (GB2312)',
  949: 'Korean',
  950: 'Chinese Traditional (Big5)',
  1200: 'Unicode',
  1201: 'Unicode (Big endian)',
  1250: 'Central European (Windows)',
  1251: 'Cyrillic (Windows)',
  1252: 'Western European (Windows)',
  1253: 'Greek (Windows)',
  1254: 'Turkish (Windows)',
  1255: 'Hebrew (Windows)',
  1256: 'Arabic (Windows)',
  1257: 'Baltic (Windows)',
  1258: 'Vietnamese (Windows)',
  10000: 'Western European (Mac)',
  10006: 'Greek (Mac)',
  10007: 'Cyrillic (Mac)',
  10010: 'Romanian (Mac)',
  10017: 'Ukrainian (Mac)',
  10021: 'Thai (Mac)',
  10029: 'Central European (Mac)',
  10079: 'Icelandic (Mac)',
  10081: 'Turkish (Mac)',
  10082: 'Croatian (Mac)',
  12000: 'Unicode (UTF-32)',
  12001: 'Unicode (UTF-32 Big endian)',
  20127: 'US-ASCII',
  20866: 'Cyrillic (KOI8-R)',
  20932: 'Japanese (JIS 0208-1990 and 0212-1990)',
  20936: 'Chinese Simplified (GB2312-80)',
  20949: 'Korean Wansung',
  21866: 'Cyrillic (KOI8-U)',
  28591: 'Western European (ISO)',
  28592: 'Central European (ISO)',
  28593: 'Latin 3 (ISO)',
  28594: 'Baltic (ISO)',
  28595: 'Cyrillic (ISO)',
  28596: 'Arabic (ISO)',
  28597: 'Greek (ISO)',
  28598: 'Hebrew (ISO-Visual)',
  28599: 'Turkish (ISO)',
  28603: 'Estonian (ISO)',
  28605: 'Latin 9 (ISO)',
  38598: 'Hebrew (ISO-Logical)',
  50220: 'Japanese (JIS)',
  51932: 'Japanese (EUC)',
  51936: 'Chinese Simplified (EUC)',
  51949: 'Korean (EUC)',
  54936: 'Chinese Simplified (GB18030)',
  65001: 'Unicode (UTF-8)',
}

/** The decoders of names that neither package knows, or that it only knows by another name. */
const decodersByName = {
  windowsansi: 'windows-1252',
  msdospc8: 'cp437',
  720: 'cp720',
  utf32: 'utf-32le',
  utf32le: 'utf-32le',
  utf32be: 'utf-32be',
  utf8sig: 'utf-8',
  708: 'iso-8859-6',
  1200: 'utf-16le',
  1201: 'utf-16be',
  10000: 'macintosh',
  10006: 'macgreek',
  10007: 'x-mac-cyrillic',
  10010: 'macromania',
  10017: 'x-mac-cyrillic',
  10021: 'macthai',
  10029: 'maccenteuro',
  10079: 'maciceland',
  10081: 'macturkish',
  10082: 'maccroatian',
  12000: 'utf-32le',
  12001: 'utf-32be',
  20127: 'windows-1252',
  20866: 'koi8-r',
  20932: 'euc-jp',
  20936: 'gbk',
  20949: 'euc-kr',
  21866: 'koi8-u',
  28603: 'iso-8859-13',
  28605: 'iso-8859-15',
  38598: 'iso-8859-8',
  50220: 'iso-2022-jp',
  51932: 'euc-jp',
  51936: 'gbk',
  51949: 'euc-kr',
  54936: 'gb18030',
  65001: 'utf-8',
  big5hkscs: 'big5',
  cp936: 'gbk',
  cp950: 'big5',
  koi8r: 'koi8-r',
  koi8u: 'koi8-u',
  kz1048: 'rk1048',
  maccyrillic: 'x-mac-cyrillic',
  macroman: 'macintosh',
  shiftjis: 'shift_jis',
  iso885916: 'iso-8859-16',
  ptcp154: 'pt154',
  maclatin2: 'maccenteuro',
  macromanian: 'macromania',
}

/**
 * The table of iconv-lite, which has an entry for each name. The entry of an alias is a string: the
 * name of another entry.
 */
const iconvEncodings = createRequire(import.meta.url)('iconv-lite/encodings')

const decoders = new Map()
for (const names of [...readPythonNames(), ...listIconvNames(), ...listWindowsNames()]) {
  // All names of one codec have the same decoder, also the names that only Python knows.
  const sharedDecoder = names.map(findDecoder).find((decoder) => decoder !== undefined)
  for (const name of names) {
    const plainName = simplifyName(name)
    const decoder = findStandardName(name) ?? decoders.get(plainName) ?? sharedDecoder
    if (decoder !== undefined) decoders.set(plainName, decoder)
  }
}
for (const [name, decoder] of Object.entries(decodersByName))
  if (!decoders.has(name)) decoders.set(name, decoder)

const path = join(import.meta.dirname, '../src/formats/encoding-aliases.ts')
const text = formatTable(decoders)
if (!process.argv.includes('--check')) writeFileSync(path, text)
else if (readFileSync(path, 'utf8') !== text) process.stdout.write(text)

/**
 * Reads the names of each codec of Python. A codec that is no encoding of text, such as zlib, is in
 * the list, but no decoder is found for it.
 */
function readPythonNames() {
  const program = [
    'import json, pkgutil, encodings',
    'from encodings.aliases import aliases',
    'codecs = {m.name: [m.name] for m in pkgutil.iter_modules(encodings.__path__)}',
    'for alias, codec in aliases.items(): codecs.setdefault(codec, [codec]).append(alias)',
    'for codec in ("mbcs", "oem"): codecs.pop(codec, None)', // They depend on the machine.
    'print(json.dumps(sorted(sorted(names) for names in codecs.values())))',
  ]
  const output = execFileSync('python3', ['-c', program.join('\n')], { encoding: 'utf8' })
  return JSON.parse(output)
}

function listIconvNames() {
  return Object.keys(iconvEncodings)
    .filter((name) => findIconvName(name) !== undefined)
    .map((name) => [name])
}

function listWindowsNames() {
  return Object.entries(windowsNames).map(([page, name]) => [page, name])
}

function findDecoder(name) {
  const plainName = simplifyName(name)
  return decodersByName[plainName] ?? findStandardName(name) ?? findIconvDecoder(plainName)
}

/**
 * Finds the name of an encoding in the Encoding Standard, which writes some labels with `-`, and
 * others with `_`. So each way of writing the name is tried.
 */
function findStandardName(name) {
  const labels = [name, name.replace(/[_ ]/g, '-'), name.replace(/[- ]/g, '_')]
  for (const label of [...labels, name.replace(/^([a-z]+)(\d)/, '$1-$2')])
    try {
      return new TextDecoder(label).encoding
    } catch {
      // TextDecoder throws for what is not a label. The next way of writing may be one.
    }
  return undefined
}

function findIconvDecoder(plainName) {
  const name = findIconvName(plainName)
  return name && (decodersByName[name] ?? findStandardName(name) ?? name)
}

/**
 * Follows aliases in the table of iconv-lite. Returns undefined for an entry that is not an
 * encoding of text with a table, such as base64.
 */
function findIconvName(plainName) {
  let name = plainName
  while (typeof iconvEncodings[name] === 'string') name = simplifyName(iconvEncodings[name])
  const type = iconvEncodings[name]?.type
  return type === '_sbcs' || type === '_dbcs' ? name : undefined
}

/** Reduces the spellings of a name to one: `UTF_8` and `utf-8` become `utf8`. */
function simplifyName(name) {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

function formatTable(table) {
  const namesByDecoder = new Map()
  for (const [name, decoder] of table)
    namesByDecoder.set(decoder, [...(namesByDecoder.get(decoder) ?? []), name])
  const entries = [...namesByDecoder].toSorted(([left], [right]) => (left < right ? -1 : 1))
  const lines = entries.flatMap(([decoder, names]) => wrapNames(decoder, names.toSorted()))
  return [
    '/*',
    ' * The names that `--encoding` takes, in lower case and without what is no letter and no',
    ' * digit, with the decoder that reads them. bin/build-encodings.mjs writes this file.',
    ' */',
    'export const encodingNames: readonly (readonly [decoder: string, names: string])[] = [',
    ...lines,
    ']',
    '',
  ].join('\n')
}

/** Formats the names of a decoder, as many in a line as fit into 100 characters. */
function wrapNames(decoder, names) {
  const lines = []
  for (const name of names) {
    const last = lines.at(-1)
    const isFull = last === undefined || decoder.length + last.length + name.length > 88
    if (isFull) lines.push(name)
    else lines[lines.length - 1] = `${last} ${name}`
  }
  return lines.map((line) => `  ['${decoder}', '${line}'],`)
}
