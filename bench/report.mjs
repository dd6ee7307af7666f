// This prints what a benchmark measured, and writes it into its section of bench/README.md.
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
 * Creates a function that prints tables, of which the first row is the heading, and records them in
 * a section of the page, with a chart.
 *
 * @param {string} folder on the disk that is measured
 * @param {string} method how the figures were measured, which stands above them
 * @param {boolean} isRecorded whether the page is written
 */
export function createReporter(folder, method, isRecorded) {
  const machine = describeMachine(folder)
  const moment = `${new Date().toISOString().slice(0, 10)} at a load of ${loadavg()[0].toFixed(1)}`
  const heading = `${moment}; ${method}`
  /** @type {(section: string, tables: string[][][], chart?: string) => void} */
  return (section, tables, chart) => {
    print(`${machine}\n${heading}\n`)
    for (const rows of tables) {
      printColumns(rows)
      print('')
    }
    if (!isRecorded) return
    replaceSection('machine', machine)
    replaceSection(section, [heading, ...tables.map(formatMarkdown)].join('\n\n'))
    if (chart) writeFileSync(join(import.meta.dirname, 'charts', `${section}.svg`), chart)
  }
}

/** Replaces what is between two markers of the page. */
function replaceSection(section, content) {
  const pattern = new RegExp(`(<!-- ${section} -->\n).*?(<!-- end -->)`, 's')
  const oldText = readFileSync(page, 'utf8')
  if (!pattern.test(oldText)) throw new Error(`${page} has no section ${section}`)
  const newText = oldText.replace(pattern, (_, start, end) => `${start}\n${content}\n\n${end}`)
  writeFileSync(page, newText)
}

/** @param {string[][]} rows */
function formatMarkdown([heading = [], ...rows]) {
  const rule = heading.map((_, index) => (index === 0 ? '---' : '--:'))
  return [heading, rule, ...rows].map((cells) => `|${cells.join('|')}|`).join('\n')
}

/** Describes where this runs. The disk is that of the folder: its syncs are what a commit costs. */
function describeMachine(folder) {
  const processors = `${availableParallelism()} × ${cpus()[0]?.model.trim()}`
  const memory = `${formatNumber(totalmem() / 1e9)} GB of memory`
  const disk = `a disk where a sync of 4 KiB takes ${formatSpread(measureSyncs(folder))} ms`
  return [
    `${process.platform} ${process.arch}`,
    processors,
    memory,
    `Node ${process.versions.node}`,
    disk,
  ].join(', ')
}

function measureSyncs(folder) {
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

export function findMedian(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

/** Formats the median, and the range of the middle 80 % of many values, or of all of a few. */
export function formatSpread(values) {
  const sortedValues = values.toSorted((a, b) => a - b)
  const margin = Math.floor(values.length / 10)
  if (values.length === 1) return formatNumber(values[0])
  const range = [sortedValues[margin], sortedValues.at(-1 - margin)].map(formatNumber).join('–')
  return `${formatNumber(findMedian(values))} (${range})`
}

/** Formats three digits, because further digits would differ in the next measurement. */
export function formatNumber(value) {
  return Number.isFinite(value)
    ? value.toLocaleString('en-US', { maximumSignificantDigits: 3 })
    : '-'
}

/**
 * Formats the median of values as a multiple of the median of `baseValues`, or `-` without them.
 */
export function formatRatio(values, baseValues) {
  return baseValues ? formatNumber(findMedian(values) / findMedian(baseValues)) : '-'
}

/**
 * @typedef {object} Goal
 * @property {string} title the row that has the goal
 * @property {string} figure what is measured
 * @property {string | undefined} [comparedTitle] the row of which it is a multiple
 * @property {string} measured a text of `formatRatio` or `formatNumber`, which is compared as it is
 *   shown
 * @property {{ atMost?: number, atLeast?: number } | undefined} [goal]
 */

/**
 * Builds the table of the goals of a benchmark, without what has no goal or was not measured.
 *
 * @param {Goal[]} goals
 */
export function buildGoalTable(goals) {
  const rows = goals.flatMap(({ title, figure, comparedTitle = '-', measured, goal }) => {
    if (goal === undefined || measured === '-') return []
    const { atMost = Infinity, atLeast = -Infinity } = goal
    const number = Number(measured.replaceAll(',', ''))
    const bound = atMost === Infinity ? `at least ${atLeast}` : `at most ${atMost}`
    const isMet = number <= atMost && number >= atLeast
    return [[title, figure, comparedTitle, measured, bound, isMet ? 'yes' : 'no']]
  })
  return [['row', 'figure', 'of', 'measured', 'goal', 'met'], ...rows]
}
