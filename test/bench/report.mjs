import { spawnSync } from 'node:child_process'
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
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
  { what: 'x echo', bar: 'at least 0.75', of: ({ serve, echo }) => serve?.rate / echo?.rate, isMet: (ratio) => ratio >= 0.75 },
  { what: 'x Prism', bar: 'at least 6', of: ({ serve, prism }) => serve?.rate / prism?.rate, isMet: (ratio) => ratio >= 6 },
  { what: 'x the p99 of echo', bar: 'below 10', of: ({ serve, echo }) => serve?.p99 / echo?.p99, isMet: (ratio) => ratio < 10 },
]

/** Where this ran: the runtime, and the disk under the folder, whose fsync is what a commit costs. */
export function printMachine(folder, how) {
  const { versions, platform, arch } = process
  print(`Node ${versions.node}, ${platform} ${arch}, ${availableParallelism()} processors, without NODE_EXTRA_CA_CERTS`)
  print(`64 connections, ${how}`)
  const [median, slow] = fsyncTimes(join(folder, 'fsync'))
  print(`${folder} is on ${fileSystemOf(folder)}; fsync after 4 KiB appended: median ${median.toFixed(2)} ms, p99 ${slow.toFixed(2)} ms\n`)
}

/** @param turns what `load` found in every turn, by the name of the peer */
export function printTable(turns) {
  const all = mediansOf(turns)
  const rows = Object.entries(all).map(([name, own]) => [
    peers[name].title,
    ...columns.map(({ of, digits = 2 }) => textOf(of(own, all), digits)),
  ])
  const table = [['', ...columns.map(({ head }) => head)], ...rows]
  const widths = table[0].map((_, index) => Math.max(...table.map((row) => row[index].length)))
  for (const row of table) print(row.map((cell, index) => (index ? cell.padStart(widths[index]) : cell.padEnd(widths[0]))).join('  '))
  print('The first two x are of requests/s, the others of p99. CPU us: what a request costs the server. load: how busy the')
  print('load generator was; near 100 it was the limit. others: what else took from the machine, 100 being one processor.')
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

/** @param memory kB after every 10,000 creates of a million */
export function printMemory({ memory, rate }) {
  print(`\nA million creates, ${textOf(rate, 0)} a second`)
  for (const [index, size] of memory.entries()) {
    if (index % 10 === 9) print(`${String((index + 1) * 10_000).padStart(9)}  ${textOf(size / 1000, 1)} MB`)
  }
  const quarter = memory.length / 4
  const ratio = Math.max(...memory.slice(quarter * 3)) / Math.max(...memory.slice(quarter, quarter * 2))
  print(`Most in the last quarter is ${textOf(ratio, 2)} x most in the second: ${ratio <= 1.1 ? 'flat' : 'NOT FLAT'}\n`)
}

function mediansOf(turns) {
  return Object.fromEntries(
    Object.entries(turns).map(([name, found]) => {
      const { memory, acknowledged, ...figures } = found[0]
      return [name, Object.fromEntries(Object.keys(figures).map((key) => [key, median(found.map((turn) => turn[key]))]))]
    }),
  )
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

function fileSystemOf(folder) {
  const { stdout } = spawnSync('df', ['--output=fstype,source', folder], { encoding: 'utf8' })
  const [type, source] = stdout?.split('\n')[1]?.split(/\s+/) ?? ['an unknown file system', '']
  return type === 'tmpfs' ? 'tmpfs, which is no disk' : `${type} ${source}`
}

/** The median and the 99th percentile in ms. */
function fsyncTimes(path) {
  const file = openSync(path, 'a')
  const block = Buffer.alloc(4096)
  const times = Array.from({ length: 200 }, () => {
    const start = performance.now()
    writeSync(file, block)
    fsyncSync(file)
    return performance.now() - start
  })
  closeSync(file)
  const sorted = times.toSorted((a, b) => a - b)
  return [sorted[100], sorted[198]]
}

function textOf(value, digits) {
  return Number.isFinite(value) ? value.toFixed(digits) : '-'
}

function print(line) {
  process.stdout.write(`${line}\n`)
}
