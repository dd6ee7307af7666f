import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import type { Cell } from '../../../src/formats/reader.js'
import { Archive } from '../../../src/formats/workbook/archive.js'
import { DamageError } from '../../../src/formats/workbook/damage.js'
import { readWorkbook } from '../../../src/formats/workbook/sheets.js'
import { parsePart } from '../../../src/formats/workbook/xml.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { isSoak, scaleRounds } from '../../helpers/sandbox/rounds.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const python = '/usr/bin/python3'
const script = join(import.meta.dirname, '../../helpers/sandbox/peer-workbooks.py')
const hasPeers = spawnSync(python, ['-c', 'import openpyxl, xlsxwriter']).status === 0

/** What openpyxl reads: rows of texts, with N before a number, or an error. */
interface PeerResult {
  rows?: (string | null)[][]
  error?: string
}

type Sheet = ReadonlyMap<number, readonly Cell[]>

test.skipIf(!hasPeers)(
  'workbooks, damaged or not, are read as by openpyxl, or rejected (needs openpyxl)',
  { timeout: 600_000 },
  async () => {
    const count = scaleRounds(150)
    const { differences, equal } = await compareWorkbooks(count)
    expect(differences).toEqual([])
    expect(equal).toBeGreaterThan(count / 3)
  },
)

test.skipIf(!(isSoak && hasPeers && isInstalled('soffice')))(
  'workbooks that LibreOffice saved are read as by openpyxl (needs LibreOffice, in a soak)',
  { timeout: 600_000 },
  async () => {
    const count = scaleRounds(30)
    const { differences, equal } = await compareWorkbooks(count, 'soffice')
    expect(differences).toEqual([])
    expect(equal).toBeGreaterThan(count / 3)
  },
)

/** @param program that opens and saves the workbooks before they are damaged */
async function compareWorkbooks(
  count: number,
  ...program: string[]
): Promise<{ differences: string[]; equal: number }> {
  const folder = createTemporaryFolder()
  const seed = process.env['PLANTS_SEED'] ?? '1'
  const { stdout } = spawnSync(python, [script, folder, String(count), seed, ...program], {
    maxBuffer: 2 ** 30,
  })
  const lines = stdout.toString().trimEnd().split('\n')
  const results = lines.map((line): PeerResult => JSON.parse(line))
  expect(results).toHaveLength(count)
  const differences: string[] = []
  let equal = 0
  for (const [index, result] of results.entries()) {
    const path = join(folder, `${String(index).padStart(5, '0')}.xlsx`)
    const outcome = compareResult(await readSheet(path), result, { isSound: index % 3 === 0 })
    if (outcome === 'equal') equal += 1
    else if (outcome !== 'not compared') differences.push(`${index}: ${outcome}`)
  }
  return { differences, equal }
}

/** Returns the difference unless there is none, or one of both rejects the workbook. */
function compareResult(
  sheet: Sheet | string,
  { rows, error }: PeerResult,
  { isSound }: { isSound: boolean },
): string {
  if (typeof sheet === 'string') return isSound ? `sound, but ${sheet}` : 'not compared'
  if (error !== undefined || !rows?.length) return 'not compared'
  return findDifference(sheet, rows) ?? 'equal'
}

/** Returns why a workbook is rejected, or its first sheet. */
async function readSheet(path: string): Promise<Sheet | string> {
  try {
    const { signal } = new AbortController()
    const archive = await Archive.open(readFileSync(path), path, signal)
    const { sheets, createRowReader } = await readWorkbook(archive)
    const [sheet] = sheets
    if (sheet?.path === undefined) return 'it has no sheet'
    const reader = createRowReader(sheet, { file: path, width: Infinity })
    for await (const _ of parsePart(archive, sheet.path, reader));
    return new Map(reader.takeRows().map(({ cells, line }) => [line, cells]))
  } catch (error) {
    if (error instanceof DamageError || error instanceof PlantsError) return error.message
    throw error
  }
}

/** A cell that is rejected is not different. */
function findDifference(sheet: Sheet, rows: (string | null)[][]): string | undefined {
  // openpyxl finds no cells in a part whose namespace is damaged.
  if (rows.flat().every((cell) => cell === null)) return undefined
  const height = Math.max(rows.length, ...sheet.keys())
  for (let line = 1; line <= height; line += 1) {
    const [own = [], other = []] = [sheet.get(line), rows[line - 1]]
    for (let column = 0; column < Math.max(own.length, other.length); column += 1)
      if (!isEqual(own[column], other[column] ?? undefined))
        return `${line}:${column + 1} is ${JSON.stringify(own[column])}, not ${other[column]}`
  }
  return undefined
}

function isEqual(own: Cell, other: string | undefined): boolean {
  if (typeof own === 'object' || own === other) return true
  if (own === undefined || other === undefined) return false
  // openpyxl decodes escapes in inline texts alone.
  const decode = (_: string, digits: string) => String.fromCharCode(parseInt(digits, 16))
  if (own === other.replace(/_x([\da-fA-F]{4})_/g, decode).trim()) return true
  return other.startsWith('N') && Number(other.slice(1)) === Number(own)
}
