import { median, note, print, printColumns, textOf } from './figures.mjs'
import { peers } from './peers.mjs'

const columns = [
  { head: 'requests/s', of: ({ rate }) => rate, digits: 0 },
  { head: 'x echo', of: ({ rate }, { echo }) => rate / echo?.rate },
  { head: 'x Prism', of: ({ rate }, { prism }) => rate / prism?.rate },
  { head: 'p50 ms', of: ({ p50 }) => p50 },
  { head: 'p99 ms', of: ({ p99 }) => p99 },
  { head: 'x echo', of: ({ p99 }, { echo }) => p99 / echo?.p99 },
  { head: 'x Prism', of: ({ p99 }, { prism }) => p99 / prism?.p99 },
  { head: 'CPU us', of: ({ cpu }) => cpu, digits: 1 },
  { head: 'peak MB', of: ({ peak }) => peak / 1000, digits: 0 },
  { head: 'load %', of: ({ load }) => load * 100, digits: 0 },
  { head: 'others %', of: ({ others }) => others * 100, digits: 0 },
]

const bars = [
  {
    what: 'x echo',
    bar: 'at least 0.75',
    of: ({ serve, echo }) => serve?.rate / echo?.rate,
    isMet: (ratio) => ratio >= 0.75,
  },
  {
    what: 'x Prism',
    bar: 'at least 7',
    of: ({ serve, prism }) => serve?.rate / prism?.rate,
    isMet: (ratio) => ratio >= 7,
  },
  {
    what: 'x the p99 of echo',
    bar: 'below 2',
    of: ({ serve, echo }) => serve?.p99 / echo?.p99,
    isMet: (ratio) => ratio < 2,
  },
]

/** @param turns what `load` found in every turn, by the name of the peer */
export function printTable(turns) {
  const all = mediansOf(turns)
  note('serve', {
    title: 'Creates',
    rows: Object.entries(all).map(([name, own]) => ({ title: peers[name].title, ...own })),
  })
  const rows = Object.entries(all).map(([name, own]) => [
    peers[name].title,
    ...columns.map(({ of, digits = 2 }) => textOf(of(own, all), digits)),
  ])
  printColumns([['', ...columns.map(({ head }) => head)], ...rows])
  print(
    'The first two x are of requests/s, the others of p99. CPU us: what a request costs the server. load: how busy the',
  )
  print(
    'load generator was; near 100 it was the limit. others: what else took from the machine, 100 being one processor.',
  )
  const isBusy = Object.values(all).some(({ others }) => others > 0.1)
  print(isBusy ? 'THE MACHINE WAS BUSY WITH SOMETHING ELSE: measure again when it is not\n' : '')
}

export function printBars(turns) {
  const all = mediansOf(turns)
  const results = bars.map(({ what, bar, of, isMet }) => {
    const ratio = of(all)
    return `${textOf(ratio, 2)} ${what} (${bar}: ${Number.isNaN(ratio) ? 'not measured' : isMet(ratio) ? 'met' : 'NOT MET'})`
  })
  print(`plants serve is ${results.join(', ')}`)
}

/** @param memory kB after every 10,000 creates */
export function printMemory({ memory, rate }) {
  print(`\n${(memory.length * 10_000).toLocaleString('en')} creates, ${textOf(rate, 0)} a second`)
  const step = Math.ceil(memory.length / 10)
  for (const [index, size] of memory.entries()) {
    if (index % step === step - 1) print(`${String((index + 1) * 10_000).padStart(9)}  ${textOf(size / 1000, 1)} MB`)
  }
  const quarter = memory.length / 4
  const ratio = Math.max(...memory.slice(quarter * 3)) / Math.max(...memory.slice(quarter, quarter * 2))
  print(`Most in the last quarter is ${textOf(ratio, 2)} x most in the second: ${ratio <= 1.1 ? 'flat' : 'NOT FLAT'}\n`)
}

function mediansOf(turns) {
  return Object.fromEntries(
    Object.entries(turns).map(([name, found]) => {
      const { memory, acknowledged, ...figures } = found[0]
      return [
        name,
        Object.fromEntries(Object.keys(figures).map((key) => [key, median(found.map((turn) => turn[key]))])),
      ]
    }),
  )
}
