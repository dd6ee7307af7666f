interface CommonEncoding {
  name: string
  /** The region or the script whose letters it has, as the dialogue of an import shows it. */
  region: string
  /** The system whose programs write it; undefined for Windows. */
  system?: string
}

/**
 * The encodings in which lists of plants are found. Of all the encodings that `--encoding` takes,
 * the dialogue offers only these.
 */
export const commonEncodings: readonly CommonEncoding[] = [
  { name: 'windows-1252', region: 'Western Europe' },
  { name: 'windows-1250', region: 'Central Europe' },
  { name: 'windows-1251', region: 'Cyrillic' },
  { name: 'windows-1253', region: 'Greek' },
  { name: 'windows-1254', region: 'Turkish' },
  { name: 'windows-1255', region: 'Hebrew' },
  { name: 'windows-1256', region: 'Arabic' },
  { name: 'windows-1257', region: 'Baltic' },
  { name: 'windows-1258', region: 'Vietnamese' },
  { name: 'windows-874', region: 'Thai' },
  { name: 'shift_jis', region: 'Japanese' },
  { name: 'euc-jp', region: 'Japanese', system: 'Unix' },
  { name: 'gb18030', region: 'Simplified Chinese' },
  { name: 'big5', region: 'Traditional Chinese' },
  { name: 'cp949', region: 'Korean' },
  { name: 'iso-8859-2', region: 'Central Europe', system: 'Unix' },
  { name: 'iso-8859-5', region: 'Cyrillic', system: 'Unix' },
  { name: 'iso-8859-7', region: 'Greek', system: 'Unix' },
  { name: 'iso-8859-15', region: 'Western Europe', system: 'Unix' },
  { name: 'koi8-r', region: 'Cyrillic', system: 'Unix' },
  { name: 'koi8-u', region: 'Cyrillic', system: 'Unix' },
  { name: 'macintosh', region: 'Western Europe', system: 'old Macs' },
  { name: 'x-mac-cyrillic', region: 'Cyrillic', system: 'old Macs' },
  { name: 'maccenteuro', region: 'Central Europe', system: 'old Macs' },
  { name: 'cp437', region: 'Western Europe', system: 'DOS' },
  { name: 'cp850', region: 'Western Europe', system: 'DOS' },
  { name: 'cp852', region: 'Central Europe', system: 'DOS' },
  { name: 'ibm866', region: 'Cyrillic', system: 'DOS' },
  { name: 'cp737', region: 'Greek', system: 'DOS' },
  { name: 'cp857', region: 'Turkish', system: 'DOS' },
]

/** Describes an encoding by its region and its system, such as `Central Europe, DOS`. */
export function describeEncoding(name: string): string | undefined {
  const encoding = commonEncodings.find((common) => common.name === name)
  return encoding && [encoding.region, encoding.system].filter(Boolean).join(', ')
}
