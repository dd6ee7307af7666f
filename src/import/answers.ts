import type { InputOptions } from '../formats/chunk.js'
import { fieldNames } from '../plant/fields.js'
import { isObject } from '../plant/json.js'

/**
 * What a person has answered about the files of an import: the options that the command line would
 * have had. A checkpoint keeps them, so that the same command resumes without questions.
 */
export interface ImportAnswers {
  encoding?: string
  sheet?: string
  delimiter?: string | undefined
  columns?: string[]
  map?: InputOptions['map']
  idFrom?: 'next'
  match?: 'name'
}

/** Returns the plan with the options that were answered. Those that were typed come first. */
export function applyAnswers<Plan extends InputOptions>(plan: Plan, answers: ImportAnswers): Plan {
  return { ...plan, ...answers, map: { ...plan.map, ...answers.map } }
}

/** Whether a value of a checkpoint, which any program may have written, has this shape. */
export function isImportAnswers(value: unknown): value is ImportAnswers {
  if (!isObject(value)) return false
  const { encoding, sheet, delimiter, columns, map, idFrom, match } = value
  return (
    [encoding, sheet, delimiter].every(isOptionalText) &&
    (columns === undefined || (Array.isArray(columns) && columns.every(isText))) &&
    (map === undefined || isMap(map)) &&
    [undefined, 'next'].includes(idFrom as undefined) &&
    [undefined, 'name'].includes(match as undefined)
  )
}

function isMap(value: unknown): boolean {
  const isField = (key: string) => fieldNames.some((field) => field === key)
  return isObject(value) && Object.keys(value).every(isField) && Object.values(value).every(isText)
}

function isOptionalText(value: unknown): boolean {
  return value === undefined || isText(value)
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}
