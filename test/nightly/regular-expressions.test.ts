import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { expect, test, vi } from 'vitest'
import { listNodes } from '../helpers/expect/messages.js'
import { listSourceFiles, readSource } from '../helpers/expect/source.js'

/*
 * Tries the regular expressions of the program on long texts that repeat a few characters.
 *
 * An expression may begin to match at each character of a text, and fail only at its end. That takes
 * the square of the time: a cell of a workbook with 50,000 digits took 13 s, and one with a million
 * would have taken an hour, in which no signal ends the program.
 */

interface Expression {
  file: string
  source: string
  flags: string
}

/** These expressions read only what the user of the program has typed or saved, or a count. */
const exemptSources = [
  String.raw`(?<=(?<!\\)(?:\\\\)*):`, // a password file
  String.raw`\/+$`, // an address
  String.raw`^:memory:$|\/\/|:[^/\\]*@|@[^/\\]*:\d|%(3a|2f|40)|=.*\s|\s.*=|^\w+:(?!.*\.(db|sqlite3?)$)`,
  String.raw`\B(?=(\d{3})+$)`,
]

/** Finds the expressions that are written between slashes. */
function findLiterals(file: string): Expression[] {
  return listNodes(parseAst(readSource(file), { lang: 'ts' })).flatMap(({ regex }) =>
    regex ? [{ file, source: regex.pattern, flags: regex.flags }] : [],
  )
}

/** Finds the expressions that a module builds from strings when it is imported. */
async function findBuilt(file: string): Promise<Expression[]> {
  const path = join(import.meta.dirname, '../..', file)
  // This loads what the module imports.
  await import(path)
  const expressions: Expression[] = []
  const original = RegExp
  const apply = (_: unknown, __: unknown, args: [string, string]) => {
    const { source, flags } = original(...args)
    expressions.push({ file, source, flags })
    return original(source, flags)
  }
  vi.stubGlobal('RegExp', new Proxy(original, { apply }))
  try {
    await import(`${path}?again`)
  } finally {
    vi.unstubAllGlobals()
  }
  return expressions
}

/** A text that consists of a start, any number of units, and an end that matches hardly anything. */
interface Shape {
  start: string
  unit: string
  end: string
}

function listShapes(source: string): Shape[] {
  const [literalStart = ''] = /^\^?[\w<"' ]*/.exec(source) ?? []
  const starts = new Set(['', 'a', '0', literalStart.replace('^', '')])
  return listUnits(source).flatMap((unit) =>
    [...starts].flatMap((start) => ['\0', '!\n'].map((end) => ({ start, unit, end }))),
  )
}

/** Lists what the expression may match again and again: its characters, pairs and words. */
function listUnits(source: string): string[] {
  const withoutClasses = source.replace(/\\[dwsWSDbBpPkux]\S?/g, '')
  const characters = [...new Set([...withoutClasses, ...' \n\ta0A1"\'[]<>=,;:.-_/\\({}xäé'])]
  const first = characters.slice(0, 9)
  const pairs = first.flatMap((character) => first.map((next) => character + next))
  const words = source.match(/[a-zA-Z]{2,}/g) ?? []
  return [...characters, ...pairs, ...words, numberedUnit]
}

/** The attributes of an element of XML have different names, so each gets another number. */
const numberedUnit = ' aNUMBER=""'

function buildText({ start, unit, end }: Shape, length: number): string {
  const units = unit.repeat(Math.ceil(length / unit.length))
  let number = 0
  return (
    start + (unit === numberedUnit ? units.replace(/NUMBER/g, () => `${number++}`) : units) + end
  )
}

/** Returns the processor time, which does not depend on what else the machine does. */
function measureMs(expression: RegExp, text: string): number {
  expression.lastIndex = 0
  const start = process.cpuUsage()
  if (expression.global) text.replace(expression, '')
  else expression.exec(text)
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

/**
 * Whether eight times the length takes far more than eight times as long. The fastest of ten runs
 * counts, because the engine compiles an expression anew now and then.
 */
function isSuperlinear(expression: RegExp, shape: Shape): boolean {
  const text = buildText(shape, 3000)
  // Nearly all expressions take a tenth of these times or less.
  if (measureMs(expression, text) < 0.5) return false
  const longText = buildText(shape, 24_000)
  const runs = Array.from({ length: 10 })
  if (runs.some(() => measureMs(expression, longText) < 20)) return false
  const timeMs = Math.min(...runs.map(() => measureMs(expression, text)))
  return runs.every(() => measureMs(expression, longText) > 24 * timeMs)
}

test('no regular expression takes the square of the time for a longer text', async () => {
  const files = listSourceFiles('src')
  const buildsExpressions = (file: string) => /^const \w+ = RegExp\(/m.test(readSource(file))
  const expressions = files.flatMap(findLiterals)
  for (const file of files.filter(buildsExpressions)) expressions.push(...(await findBuilt(file)))
  expect(expressions.map(({ source }) => source)).toEqual(expect.arrayContaining(exemptSources))
  const superlinear = expressions.flatMap(({ file, source, flags }) => {
    const expression = new RegExp(source, flags)
    if (exemptSources.includes(source)) return []
    const shape = listShapes(source).find((shape) => isSuperlinear(expression, shape))
    return shape ? [{ file, source, ...shape }] : []
  })
  expect(superlinear).toEqual([])
})
