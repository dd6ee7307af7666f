import { median, note, print, printColumns, textOf } from '../figures.mjs'

/** @param entries the rows of the table, each with its `times` in ms and its `peak` in MB */
export function printTimes(entries) {
  const curl = entries.find(({ kind }) => kind === 'curl')
  const figures = entries.map((entry) => {
    const { title, kind, subject, peak } = entry
    const bare = entries.find((other) => other.kind === 'bare' && other.subject === subject)
    const [time, base] = [medianOf(entry), medianOf(bare)]
    return { title, kind, subject, time, ratio: time / base, above: time - base, peak }
  })
  note('start', { title: 'Whole processes', rows: figures })
  const rows = figures.map(({ title, time, ratio, above, peak }) => [
    ...[title, textOf(time, 1), textOf(ratio, 2), textOf(above, 1)],
    ...[textOf(time / medianOf(curl), 2), textOf(peak, 0)],
  ])
  printColumns([['', 'ms', 'x bare', 'above it', 'x curl', 'peak MB'], ...rows])
  print(
    'x bare: as many times what the runtime takes for nothing, which is the first row of each; x curl: of curl --version.',
  )
  print('')
}

/** Prints what a part of a start adds to it. */
export function printDifferences(entries) {
  for (const { what, more, less } of differences) {
    const [longer, shorter] = [more, less].map((wanted) => entries.find(({ kind }) => kind === wanted))
    const time = differenceOf(longer, shorter)
    print(`${what}: ${time < 0 ? '-' : '+'}${Math.abs(time).toFixed(1)} ms (${longer.title}, against ${shorter.title})`)
  }
  print('')
}

const differences = [
  { what: 'settings file', more: 'settled', less: 'create' },
  { what: 'remote store', more: 'remote', less: 'create' },
  { what: 'saved token, through a name', more: 'saved', less: 'remote' },
]

/**
 * The ms that one takes more than another, of each run by itself: what slows the machine down for a while, slows both.
 */
export function differenceOf(longer, shorter) {
  return longer && shorter ? median(longer.times.map((time, run) => time - shorter.times[run])) : Number.NaN
}

/** Not a number for what was not measured. */
export function medianOf(entry) {
  return entry ? median(entry.times) : Number.NaN
}
