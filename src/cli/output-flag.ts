/** What `--output` says, where the flags as a whole may not be understood. */
export function outputFlag(argv: string[]): string | undefined {
  const end = argv.indexOf('--')
  const flags = end < 0 ? argv : argv.slice(0, end)
  const values = flags.flatMap((flag, at) =>
    flag === '--output' ? (flags[at + 1] ?? []) : flag.startsWith('--output=') ? flag.slice(9) : [],
  )
  return values.at(-1)
}
