import { print, printColumns, textOf } from '../figures.mjs'
import { medianOf } from './report.mjs'

/** At most this often the second row of the same runtime, or of another program. */
const bars = [
  { of: isNode20, more: 'create', less: 'bare', bar: 1.7 },
  { of: isLaterNode, more: 'create', less: 'bare', bar: 1.6 },
  { of: isNode, more: 'version', less: 'bare', bar: 1.2 },
  { of: isNode20, more: 'remote', less: 'bare', bar: 2.2 },
  { of: isLaterNode, more: 'remote', less: 'bare', bar: 2 },
  { of: isFile, more: 'create', less: 'insert', bar: 2.6 },
  { of: isFile, more: 'remote', less: 'post', bar: 2 },
]
const mostMegabytes = 40 // of a create by the single file

/** Prints each bar with its figure, for every runtime that it is about. */
export function printBars(entries) {
  const others = entries.filter(({ subject }) => subject === undefined)
  const subjects = new Set(entries.flatMap(({ subject }) => subject ?? []))
  const rows = [...subjects].flatMap((subject) => {
    const own = entries.filter((entry) => entry.subject === subject)
    const row = (kind) => [...own, ...others].find((entry) => entry.kind === kind)
    const ratios = bars
      .filter(({ of }) => of(own[0]))
      .map(({ more, less, bar }) => [`${subject}: ${more} / ${less}`, medianOf(row(more)) / medianOf(row(less)), bar])
    return isFile(own[0]) ? [...ratios, [`${subject}: create, MB`, row('create').peak, mostMegabytes]] : ratios
  })
  const lines = rows.map(([what, figure, bar]) => [what, textOf(figure, 2), String(bar), verdict(figure, bar)])
  printColumns([['', 'is', 'at most', ''], ...lines])
  print('')
}

function verdict(figure, bar) {
  if (!Number.isFinite(figure)) return 'not measured'
  return figure <= bar ? 'met' : 'NOT MET'
}

function isNode({ major }) {
  return major !== undefined
}

function isNode20({ major }) {
  return major === 20
}

function isLaterNode({ major }) {
  return major > 20
}

function isFile({ subject }) {
  return subject === 'file'
}
