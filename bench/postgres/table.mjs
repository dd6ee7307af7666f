import { median, note, print, printColumns, textOf } from '../figures.mjs'

/**
 * Prints rows of figures, and below them the bars.
 *
 * @param name of the figures that are noted, all that were measured
 * @param columns each with its `head`, how many `digits` it has, and what it is `of` a row and all rows
 * @param entries by their names, each with a `title` and its `turns`: of every figure the median counts
 * @param bars each with `what`, the `least` that the figure may be, and what it is `of` all rows
 */
export function printTable(name, title, columns, entries, bars = []) {
  const all = Object.fromEntries(Object.entries(entries).map(([key, { turns }]) => [key, mediansOf(turns)]))
  note(name, { title, rows: Object.entries(entries).map(([key, entry]) => ({ title: entry.title, ...all[key] })) })
  const rows = Object.entries(entries).map(([key, entry]) => [
    entry.title,
    ...columns.map(({ of, digits = 2 }) => numberText(of(all[key], all), digits)),
  ])
  print(title)
  printColumns([['', ...columns.map(({ head }) => head)], ...rows])
  const isBusy = Object.values(all).some(({ others }) => others > 0.1)
  if (isBusy) print('THE MACHINE WAS BUSY WITH SOMETHING ELSE: measure again when it is not')
  print('')
  if (bars.length > 0) printBars(bars, all)
}

function printBars(bars, all) {
  const rows = bars.map(({ what, least, of }) => {
    const figure = of(all)
    return [
      what,
      textOf(figure, 2),
      String(least),
      Number.isNaN(figure) ? 'not measured' : figure >= least ? 'met' : 'NOT MET',
    ]
  })
  printColumns([['', 'is', 'at least', ''], ...rows])
  print('')
}

function mediansOf(turns) {
  const names = Object.keys(turns[0]).filter((name) => typeof turns[0][name] === 'number')
  return Object.fromEntries(names.map((name) => [name, median(turns.map((turn) => turn[name]))]))
}

function numberText(value, digits) {
  if (!Number.isFinite(value)) return '-'
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
