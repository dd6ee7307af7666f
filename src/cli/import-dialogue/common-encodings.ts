/**
 * The encodings in which lists of plants are found, with their languages. Of all the encodings that
 * `--encoding` takes, the dialogue offers only these.
 */
export const commonEncodings: readonly { name: string; languages: string }[] = [
  { name: 'windows-1252', languages: 'Western Europe' },
  { name: 'windows-1250', languages: 'Polish, Czech, Hungarian' },
  { name: 'windows-1251', languages: 'Cyrillic' },
  { name: 'windows-1253', languages: 'Greek' },
  { name: 'windows-1254', languages: 'Turkish' },
  { name: 'windows-1255', languages: 'Hebrew' },
  { name: 'windows-1256', languages: 'Arabic' },
  { name: 'windows-1257', languages: 'Baltic' },
  { name: 'windows-1258', languages: 'Vietnamese' },
  { name: 'windows-874', languages: 'Thai' },
  { name: 'shift_jis', languages: 'Japanese' },
  { name: 'euc-jp', languages: 'Japanese, Unix' },
  { name: 'gb18030', languages: 'Simplified Chinese' },
  { name: 'big5', languages: 'Traditional Chinese' },
  { name: 'cp949', languages: 'Korean' },
  { name: 'utf-16le', languages: 'all, Windows' },
  { name: 'utf-16be', languages: 'all' },
  { name: 'iso-8859-2', languages: 'Central Europe, Unix' },
  { name: 'iso-8859-5', languages: 'Cyrillic, Unix' },
  { name: 'iso-8859-15', languages: 'Western Europe, Unix' },
  { name: 'koi8-r', languages: 'Russian, Unix' },
  { name: 'koi8-u', languages: 'Ukrainian, Unix' },
  { name: 'macintosh', languages: 'Western Europe, old Macs' },
  { name: 'cp437', languages: 'United States, DOS' },
  { name: 'cp850', languages: 'Western Europe, DOS' },
  { name: 'cp852', languages: 'Central Europe, DOS' },
  { name: 'cp866', languages: 'Cyrillic, DOS' },
]
