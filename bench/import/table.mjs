import { median, note, print, printColumns, textOf } from '../figures.mjs'

/**
 * Prints what every program reached, and how the first one compares with the others.
 *
 * @param name of the figures that are noted
 * @param entries each with its `rates` in rows a second, one a round; `bar` is the least that the ratio may be
 */
export function printRates(name, title, entries) {
  const [subject] = entries
  note(name, { title, rows: entries.map(({ title: program, rates }) => ({ title: program, rate: median(rates) })) })
  const rows = entries.map(({ title: program, rates, bar }, index) => {
    const ratio = median(subject.rates) / median(rates)
    const spread = (Math.max(...rates) - Math.min(...rates)) / median(rates)
    const comparison = index === 0 ? '' : `${textOf(ratio, 2)} x`
    return [program, thousands(median(rates)), `${textOf(spread * 100, 0)} %`, comparison, ...verdict(bar, ratio)]
  })
  print(title)
  printColumns([['', 'rows/s', 'spread', `${subject.title} is`, 'bar', ''], ...rows])
  print('')
}

export function thousands(value) {
  return Math.round(value).toLocaleString('en-US')
}

function verdict(bar, ratio) {
  return bar === undefined ? ['', ''] : [`at least ${bar}`, ratio >= bar ? 'reached' : 'MISSED']
}
