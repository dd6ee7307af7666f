// Makes the tables and the charts of docs/benchmarks.md from the figures of all benchmarks.
import { bars, growth } from './charts.mjs'

const first = (key) => (row, rows) => row[key] / rows[0][key]
const latencies = { 'p50, ms': 'p50', 'p99, ms': 'p99' }
const imports = { 'rows/s': 'rate', '× first row': first('rate') }
const copies = { ...imports, 'server CPU, µs': 'databaseCpu' }
const megabytes = ({ peak }) => peak && peak / 1000

/**
 * The columns of each table, by the names of the figures: what is in a column is a figure of a row, or is computed from
 * it and all rows.
 */
const tables = {
  start: { ms: 'time', '× empty process': 'ratio', 'peak, MB': 'peak' },
  'start files': { KB: 'size' },
  serve: { 'requests/s': 'rate', '× first row': first('rate'), ...latencies, 'CPU, µs': 'cpu', 'peak, MB': megabytes },
  reads: { 'plants/s': 'rate', 'peak, MB': megabytes },
  'import ordered': imports,
  'import random': imports,
  export: imports,
  'import remote': imports,
  'postgres service': { 'creates/s': 'rate', ...latencies, 'CPU, µs': 'cpu', 'server CPU, µs': 'databaseCpu' },
  'postgres nodes': { 'creates/s': 'rate', '× first row': first('rate'), ...latencies },
  'postgres ordered': copies,
  'postgres random': copies,
  'postgres export': copies,
  growth: {
    ...{ 'import, s': 'importTime', 'peak, MB': 'importPeak', 'export, s': 'exportTime', 'peak, MB ': 'exportPeak' },
    ...{
      'list, s': 'listTime',
      'peak, MB  ': 'listPeak',
      'serve, s': 'serveTime',
      'peak, MB   ': 'servePeak',
      'creates/s': 'rate',
    },
  },
}

/**
 * @param page the text of docs/benchmarks.md: what is between its markers is replaced
 * @param figures by their names, as `note` in figures.mjs adds them
 * @returns the new text of the page, and the charts by the names of their files
 */
export function render(page, figures) {
  const text = page.replaceAll(
    /(<!-- figures: ([\w, ]+) -->\n).*?(<!-- end -->)/gs,
    (_, start, names, end) =>
      `${start}\n${names
        .split(', ')
        .map((name) => part(name, figures))
        .join('\n')}\n${end}`,
  )
  return { page: text, charts: charts(figures) }
}

function part(name, { machine, versions, how, ...figures }) {
  if (name === 'machine') return machineOf(machine, versions)
  if (name.startsWith('how ')) return `${how[name.slice(4)]}.\n`
  const { title, rows } = figures[name]
  const columns = Object.entries(tables[name])
  const lines = [
    [title, ...columns.map(([head]) => head.trim())],
    ['---', ...columns.map(() => '--:')],
    ...rows.map((row) => [
      row.title,
      ...columns.map(([, of]) => numberOf(typeof of === 'string' ? row[of] : of(row, rows))),
    ]),
  ]
  return lines.map((cells) => `|${cells.join('|')}|\n`).join('')
}

function machineOf({ platform, arch, processors, model, memory, fileSystem, fsync, date }, versions) {
  const listed = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return [
    `- ${platform} ${arch}, ${processors} × ${model}, ${numberOf(memory)} GB of memory`,
    `- ${fileSystem}; a flush of 4 KiB takes ${numberOf(fsync)} ms`,
    `- ${listed.join(', ')}`,
    `- measured on ${date}`,
    '',
  ].join('\n')
}

/** Three digits are what a measurement on another day has in common with this one. */
function numberOf(value) {
  return Number.isFinite(value) ? value.toLocaleString('en-US', { maximumSignificantDigits: 3 }) : '-'
}

function charts(figures) {
  const started = figures.start.rows.filter(({ kind }) =>
    ['bare', 'create', 'remote', 'post', 'insert', 'http'].includes(kind),
  )
  const rates = (name) =>
    figures[name].rows.map(({ title, rate }) => ({ title, value: rate, isOther: !title.startsWith('plants') }))
  return {
    'bench-start.svg': bars('From start to exit, ms', {
      ms: started.map(({ title, time, subject, kind }) => ({
        title,
        value: time,
        isOther: !subject || kind === 'bare',
      })),
    }),
    'bench-serve.svg': bars('Creates per second, 64 connections', { creates: rates('serve') }),
    'bench-import.svg': bars('Plants per second, SQLite file', {
      'ids in order': [...figures['import ordered'].rows, figures.export.rows[0]].map(({ title, rate }) => ({
        title,
        value: rate,
      })),
      'ids at random': figures['import random'].rows.map(({ title, rate }) => ({ title, value: rate })),
    }),
    'bench-growth.svg': growth(
      'Time and peak memory over the number of plants',
      linesOf('Time', figures),
      linesOf('Peak', figures),
    ),
  }
}

function linesOf(suffix, { growth: { rows } }) {
  const lines = ['import', 'export', 'list', 'serve'].map((name) => [
    name,
    rows.map((row) => [row.plants, row[name + suffix]]),
  ])
  return Object.fromEntries(lines)
}
