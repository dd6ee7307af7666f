// Prints what a benchmark measured, and writes it into its section of bench/README.md.
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { print, printColumns } from './common.mjs'

const page = join(import.meta.dirname, 'README.md')

/**
 * Prints tables, of which the first row is the heading, and records them in a section of the page, with a chart.
 *
 * @param {string} folder on the disk that is measured
 * @param {string} how what is above the figures
 * @param {boolean} isRecorded whether the page is written
 */
export function reporterOf(folder, how, isRecorded) {
  const machine = machineOf(folder)
  const moment = `${new Date().toISOString().slice(0, 10)} at a load of ${loadavg()[0].toFixed(1)}`
  const heading = `${moment}; ${how}, with their ranges`
  /** @type {(section: string, tables: string[][][], chart?: string) => void} */
  return (section, tables, chart) => {
    print(`${machine}\n${heading}\n`)
    for (const rows of tables) {
      printColumns(rows)
      print('')
    }
    if (!isRecorded) return
    replace('machine', machine)
    replace(section, [heading, ...tables.map(markdownOf)].join('\n\n'))
    if (chart) writeFileSync(join(import.meta.dirname, 'charts', `${section}.svg`), chart)
  }
}

/** Replaces what is between two markers of the page. */
function replace(section, text) {
  const part = new RegExp(`(<!-- ${section} -->\n).*?(<!-- end -->)`, 's')
  const old = readFileSync(page, 'utf8')
  if (!part.test(old)) throw new Error(`${page} has no section ${section}`)
  const replaced = old.replace(part, (_, start, end) => `${start}\n${text}\n\n${end}`)
  writeFileSync(page, replaced)
}

/** @param {string[][]} rows */
function markdownOf([heading = [], ...rows]) {
  const rule = heading.map((_, index) => (index === 0 ? '---' : '--:'))
  return [heading, rule, ...rows].map((cells) => `|${cells.join('|')}|`).join('\n')
}

/** Where this runs; the disk is that of the folder, and its syncs are what a commit costs. */
function machineOf(folder) {
  const processors = `${availableParallelism()} × ${cpus()[0]?.model.trim()}`
  const memory = `${numberText(totalmem() / 1e9)} GB of memory`
  const disk = `a disk where a sync of 4 KiB takes ${spread(syncTimes(folder))} ms`
  return [
    `${process.platform} ${process.arch}`,
    processors,
    memory,
    `Node ${process.versions.node}`,
    disk,
  ].join(', ')
}

function syncTimes(folder) {
  const path = join(folder, 'sync')
  const file = openSync(path, 'a')
  const times = Array.from({ length: 200 }, () => {
    const start = performance.now()
    writeSync(file, Buffer.alloc(4096))
    fsyncSync(file)
    return performance.now() - start
  })
  closeSync(file)
  rmSync(path)
  return times
}

export function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

/** The median, and the range of the middle 80 % of many values, or of all of a few. */
export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const margin = Math.floor(values.length / 10)
  if (values.length === 1) return numberText(values[0])
  return `${numberText(median(values))} (${numberText(sorted[margin])}–${numberText(sorted.at(-1 - margin))})`
}

/** Three digits are what a measurement on another day has in common with this one. */
export function numberText(value) {
  return Number.isFinite(value)
    ? value.toLocaleString('en-US', { maximumSignificantDigits: 3 })
    : '-'
}

/** How many times as much one series is as another. */
export function ratioText(values, others) {
  return others ? numberText(median(values) / median(others)) : '-'
}

/**
 * Whether a ratio meets a goal, such as `at most 2.1: missed`.
 *
 * @param ratio a text of `ratioText`, which is compared as it is shown
 * @param goal `{ most }` or `{ least }`; undefined if there is none
 */
export function goalText(ratio, goal) {
  if (goal === undefined || ratio === '-') return '-'
  const { most = Infinity, least = -Infinity } = goal
  const number = Number(ratio.replaceAll(',', ''))
  const isMet = number <= most && number >= least
  return `${most === Infinity ? `at least ${least}` : `at most ${most}`}: ${isMet ? 'met' : 'missed'}`
}
