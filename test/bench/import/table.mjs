import { median, print, printColumns, textOf } from '../figures.mjs'

/**
 * Prints what every program reached, and how the first one compares with the others.
 *
 * @param entries each with its `rates` in rows a second, one a round; `bar` is the least that the ratio may be
 */
export function printRates(title, entries) {
  const [subject] = entries
  const rows = entries.map(({ title: name, rates, bar }, index) => {
    const ratio = median(subject.rates) / median(rates)
    const spread = (Math.max(...rates) - Math.min(...rates)) / median(rates)
    const comparison = index === 0 ? '' : `${textOf(ratio, 2)} x`
    return [name, thousands(median(rates)), `${textOf(spread * 100, 0)} %`, comparison, ...verdict(bar, 'least', ratio >= bar)]
  })
  print(title)
  printColumns([['', 'rows/s', 'spread', `${subject.title} is`, 'bar', ''], ...rows])
  print('')
}

/** @param entries each with how many `lines` were imported, the `seconds` it took, and the `peak` in MB */
export function printPeaks(title, entries, bar) {
  const rows = entries.map(({ lines, seconds, peak }) => [
    thousands(lines),
    thousands(lines / seconds),
    textOf(peak, 0),
    ...verdict(bar, 'most', Number.isNaN(peak) ? undefined : peak <= bar),
  ])
  print(title)
  printColumns([['lines', 'rows/s', 'peak MB', 'bar', ''], ...rows])
  print('')
}

export function thousands(value) {
  return Math.round(value).toLocaleString('en-US')
}

function verdict(bar, limit, isReached) {
  if (bar === undefined) return ['', '']
  return [`at ${limit} ${bar}`, isReached === undefined ? 'not measured' : isReached ? 'reached' : 'MISSED']
}
