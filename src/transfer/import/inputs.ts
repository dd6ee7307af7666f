import { createHash } from 'node:crypto'
import { closeSync, constants, openSync, realpathSync, statSync } from 'node:fs'
import { malformed, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { formatOf, formats } from '../formats/formats.js'
import { RecordMapper } from '../formats/record-mapper.js'
import type { ImportPlan } from './import.js'
import { Reader } from './reader.js'
import { type ImportInput, openSource, unreadableInput } from './source.js'

/** Throws `malformed` for an unreadable input or a repeated path. */
export async function checkInputs(plan: ImportPlan, places: Record<string, string | undefined>, io: Io): Promise<void> {
  const files = plan.inputs.filter(({ path }) => path !== '-')
  for (const input of files) assertReadable(input)
  const known = new Map(files.map(({ path, name }) => [identityOf(path), `the input ${name}`]))
  for (const [flag, path] of Object.entries(places)) {
    const identity = path === undefined ? undefined : identityOf(path)
    const other = identity === undefined ? undefined : known.get(identity)
    if (other !== undefined) throw malformed(`${flag} names ${other}`, 'Choose another file')
    if (identity !== undefined) known.set(identity, `the same file as ${flag}`)
  }
  if (plan.inputs.length < 2) return // with a journal, the import itself reports more
  const formats = await formatsOf(plan, io)
  const other = formats.findIndex((format) => format !== formats[0] && format !== 'unknown')
  if (places['--rejects'] === undefined || other < 0) return // a rejects file must be importable, so its records are of one format
  const names = `${plan.inputs[0]?.name} and ${plan.inputs[other]?.name}`
  const message = `The rejected records of ${names} cannot be in one file: their formats, headers or encodings differ`
  throw malformed(message, 'Import them one by one')
}

export async function formatsOf(plan: ImportPlan, io: Io): Promise<string[]> {
  const formats: string[] = []
  for (const input of plan.inputs) formats.push(await formatIn(input, plan, io))
  return formats
}

function assertReadable({ path, name }: ImportInput): void {
  try {
    const stats = statSync(path)
    if (stats.isDirectory()) throw Object.assign(new Error('a directory'), { code: 'EISDIR' })
    if (stats.isFile()) closeSync(openSync(path, constants.O_RDONLY))
  } catch (error) {
    throw systemCode(error) === undefined ? error : unreadableInput(name, error)
  }
}

function identityOf(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return path
  }
}

/** The format, encoding and header of an input, as a text to compare; `unknown` for a stream, which can be read only once. */
async function formatIn(input: ImportInput, plan: ImportPlan, io: Io): Promise<string> {
  if (input.path === '-' || !statSync(input.path).isFile()) return 'unknown'
  const source = await openSource(input, io)
  try {
    const reader = new Reader(source, createHash('sha256'), plan.encoding)
    const { bytes, isLast } = await reader.head()
    const format = formatOf(bytes, isLast, input.name, plan)
    if (format !== 'csv' && format !== 'tsv') return `JSON ${reader.encoding}`
    reader.use(formats[format], new RecordMapper(plan.rules))
    await reader.next(bytes.length)
    return [reader.encoding, reader.save()?.format['delimiter'], `${reader.header}`.trimEnd()].join(' ')
  } finally {
    source.close()
  }
}
