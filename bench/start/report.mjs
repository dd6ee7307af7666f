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

/** Not a number for what was not measured. */
export function medianOf(entry) {
  return entry ? median(entry.times) : Number.NaN
}
