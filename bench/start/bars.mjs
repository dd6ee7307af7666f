import { print, printColumns, textOf } from '../figures.mjs'
import { differenceOf, medianOf } from './report.mjs'

const quick = ['version', 'help', 'completion']

/**
 * What is asked of a start: at most `bar`, and `aim` at best. `of` finds a row by its kind, among those of the subject.
 */
const bars = [
  {
    of: isNode(20),
    what: 'create / bare',
    bar: 1.9,
    aim: 1.6,
    figure: (row) => medianOf(row('create')) / medianOf(row('bare')),
  },
  {
    of: isNode(24),
    what: 'create / bare',
    bar: 1.6,
    aim: 1.35,
    figure: (row) => medianOf(row('create')) / medianOf(row('bare')),
  },
  {
    of: isFile,
    what: 'create / sqlite3, INSERT',
    bar: 4,
    aim: 3,
    figure: (row) => medianOf(row('create')) / medianOf(row('insert')),
  },
  {
    of: isFile,
    what: 'create, ms where curl --version takes 5',
    bar: 10,
    aim: 7,
    figure: (row) => (medianOf(row('create')) * 5) / medianOf(row('curl')),
  },
  {
    of: isFile,
    what: 'create, remote / curl, POST',
    bar: 4,
    aim: 2,
    figure: (row) => medianOf(row('remote')) / medianOf(row('post')),
  },
  { of: isFile, what: 'completion, ms', bar: 30, aim: 30, figure: (row) => medianOf(row('completion')) },
  { of: isFile, what: 'create, MB', bar: 50, aim: 30, figure: (row) => row('create')?.peak ?? Number.NaN },
  {
    of: () => true,
    what: 'the most of --version, --help, completion / create, each above bare',
    bar: 0.5,
    aim: 0.3,
    figure: (row) => mostQuick(row) / differenceOf(row('create'), row('bare')),
  },
]

/** Prints each bar with its figure, for every runtime that it is about. */
export function printBars(entries) {
  const others = entries.filter(({ subject }) => subject === undefined)
  const subjects = new Set(entries.flatMap(({ subject }) => subject ?? []))
  const rows = [...subjects].flatMap((subject) => {
    const own = entries.filter((entry) => entry.subject === subject)
    const row = (kind) => [...own, ...others].find((entry) => entry.kind === kind)
    return bars
      .filter(({ of }) => of(own[0]))
      .map((bar) => [`${subject}: ${bar.what}`, ...verdict(bar, bar.figure(row))])
  })
  printColumns([['', 'is', 'at most', 'aim', ''], ...rows])
  print('')
}

function verdict({ bar, aim }, figure) {
  const isMet = figure <= aim ? 'met, as aimed' : figure <= bar ? 'met' : 'NOT MET'
  return [textOf(figure, 2), String(bar), String(aim), Number.isNaN(figure) ? 'not measured' : isMet]
}

function mostQuick(row) {
  const times = quick.map((kind) => differenceOf(row(kind), row('bare'))).filter((time) => !Number.isNaN(time))
  return times.length > 0 ? Math.max(...times) : Number.NaN
}

function isNode(version) {
  return ({ major }) => major === version
}

function isFile({ subject }) {
  return subject === 'file'
}
