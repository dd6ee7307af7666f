// Reads a workbook in a thread of its own, because one call of hucre can take a minute, in which no signal is delivered.
// Plain JavaScript, because Node 20 starts no thread in TypeScript.
const { parentPort, workerData } = require('node:worker_threads')

/** @typedef {import('./workbook-thread.js').PostedCell} PostedCell */
/** @typedef {import('./workbook-thread.js').Requests} Requests */
/** @typedef {{ [T in keyof Requests]: (request: Requests[T]['request']) => Promise<Requests[T]['reply']> }} Answers */

/** The last sheet that was read. */
let sheet = noSheet()

/** @type {Answers} */
const answers = {
  async sheets() {
    const names = []
    const list = ({ name }) => {
      names.push(name)
      return false
    }
    const { dateSystem } = await read({ sheets: list })
    return { names, isFrom1904: dateSystem === '1904' }
  },

  async rows({ index, from, to, width, maxRows }) {
    if (sheet.index !== index || sheet.maxRows !== maxRows) await open(index, maxRows)
    const rows = []
    let length = 0
    for (let row = from; row < Math.min(to, sheet.rows.length) && length < maxLength; row += 1) {
      const cells = sheet.rows[row]
        .slice(0, width)
        .map((value, column) => posted(value, row, column))
      while (cells.length > 0 && cells.at(-1) === null) cells.pop()
      const size = lengthOf(cells)
      rows.push(size > workerData.maxRecordLength ? undefined : cells)
      length += Math.min(size, workerData.maxRecordLength)
    }
    return { rows, isLast: from + rows.length >= sheet.rows.length }
  },

  // One column at a time, because hucre keeps some hundred bytes for each cell with a style.
  async readFormats({ index, wanted }) {
    for (const { column, types } of wanted) {
      if (!sheet.rows.some((row) => types.includes(typeOf(row[column] ?? null)))) continue
      const name = columnName(column)
      const { sheets } = await read({
        sheets: [index],
        range: `${name}1:${name}1048576`,
        readStyles: true,
      })
      for (const [key, { style }] of sheets[0].cells ?? [])
        if (style?.numFmt) sheet.formats.set(key, style.numFmt)
    }
  },
}

/** Without what is in columns above the 256th: a cell far to the right would take a kilobyte for each one before it. */
async function open(index, maxRows) {
  sheet = noSheet()
  const limit = maxRows === undefined ? {} : { maxRows }
  const { sheets } = await read({ sheets: [index], range: 'A1:IV1048576', ...limit })
  const [{ rows, cells }] = sheets
  let length = 0
  for (const row of rows) length += lengthOf(row)
  if (length > workerData.maxLength) throw new RangeError('The text of a sheet is too long') // cells share their texts
  sheet = { index, maxRows, rows, cells, formats: new Map() }
}

function noSheet() {
  return { index: -1, maxRows: undefined, rows: [], cells: undefined, formats: new Map() }
}

/**
 * Dates as if they were counted from 1904, from which their numbers can be had: from 1900, hucre makes two of them the
 * same day.
 */
async function read(options) {
  const { readXlsx } = await import('hucre/xlsx')
  const isOpened = Array.isArray(options.sheets)
  return await readXlsx(workerData.bytes, isOpened ? { dateSystem: '1904', ...options } : options)
}

/** @returns {PostedCell} */
function posted(value, row, column) {
  const key = sheet.cells || sheet.formats.size > 0 ? `${row},${column}` : ''
  const cell = sheet.cells?.get(key)
  const format = sheet.formats.get(key)
  if (cell?.type === 'error') return { value, type: 'error' }
  if (value === null && cell?.formula !== undefined) return { value, type: 'formula' }
  return format === undefined ? value : { value, format }
}

function lengthOf(cells) {
  let length = 0
  for (const cell of cells) {
    const value = cell instanceof Object && 'value' in cell ? cell.value : cell
    if (typeof value === 'string') length += value.length
  }
  return length
}

function typeOf(value) {
  if (value instanceof Date) return 'date'
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d|^T?\d\d:\d\d/.test(value)
    ? 'time'
    : typeof value
}

/** The name of one of the first 256 columns. */
function columnName(column) {
  const letter = (index) => String.fromCharCode(65 + index)
  return column < 26 ? letter(column) : letter(Math.floor(column / 26) - 1) + letter(column % 26)
}

/** The length of the texts that are posted at once. */
const maxLength = 33_554_432

async function answer({ type, request }) {
  try {
    parentPort.postMessage({ reply: await answers[type](request) })
  } catch (error) {
    // hucre says only in words what is above its limits. V8 throws a RangeError for a collection, or a text.
    const isLimit = error instanceof RangeError || /\bover the \d+ limit\b/.test(error.message)
    parentPort.postMessage({ error: { message: error.message, isLimit } })
  }
}

parentPort.on('message', (message) => void answer(message))
