import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { smallestId } from '../../plant/plant.js'
import { checkSignal } from '../../platform/clock.js'
import { malformed, type PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { must } from '../../platform/values.js'
import type { ExistsPolicy } from '../../stores/common/conflict.js'
import type { FormatReader, InputOptions } from '../formats/format.js'
import { openFormat } from '../formats/formats.js'
import { type Position, start } from './checkpoint.js'
import { Mapper } from './map.js'
import { rejectsLayout } from './rejects.js'
import { type Fingerprint, type ImportInput, openSource } from './source.js'

export interface ImportPlan extends InputOptions {
  inputs: ImportInput[]
  ifExists: ExistsPolicy
  /** rejected records after which the import stops */
  maxErrors: number
  /** written at once */
  maxRecords: number
  /** reads and maps the next ones meanwhile: while SQLite writes, nothing else runs */
  readsAhead: boolean
}

export interface OpenInput extends FormatReader {
  isEmpty: boolean
  fingerprint(): Fingerprint
  close(): void
}

/** Throws `malformed` for an unreadable input, an unknown format and an unusable header. */
export async function openInput(
  input: ImportInput,
  plan: ImportPlan,
  io: Pick<Io, 'stdin' | 'signal'>,
): Promise<OpenInput> {
  const source = await openSource(input, io)
  try {
    const reader = await openFormat({ ...source, name: input.name, signal: io.signal }, plan)
    const { head, fingerprint, close } = source
    return { ...reader, isEmpty: head.length === 0, fingerprint, close }
  } catch (error) {
    source.close()
    throw error
  }
}

export function otherLayout(name: string): PlantsError {
  const what = `The format or the header of ${name} differs, so its rejected records need a file of their own`
  return malformed(what, 'Import it alone, with another --rejects')
}

/** Before anything is stored. Pipes can be read only once. */
export async function assertSameLayout(first: OpenInput, plan: ImportPlan, io: Io): Promise<void> {
  for (const input of plan.inputs.slice(1)) {
    if (!isFile(input)) continue
    const reader = await openInput(input, plan, io)
    reader.close()
    if (rejectsLayout(reader) !== rejectsLayout(first)) throw otherLayout(input.name)
  }
}

/** Of the records that have an id; undefined if an input cannot be read twice. */
export async function greatestIdIn(plan: ImportPlan, io: Io): Promise<bigint | undefined> {
  if (!plan.inputs.every(isFile)) return undefined
  let greatest: bigint | undefined
  for (const input of plan.inputs) {
    const reader = await openInput(input, plan, io)
    const position = { ...start, nextId: String(smallestId) } // what it assigns meanwhile is not greater
    const mapper = new Mapper(plan.rules, plan.ifExists, reader.header, undefined, position)
    try {
      for await (const { records } of reader.chunks) {
        for (const raw of records) {
          const id = mapper.idOf(raw)
          if (id !== undefined && (greatest === undefined || id > greatest)) greatest = id
        }
        await checkSignal(io.signal)
      }
    } finally {
      reader.close()
    }
  }
  return greatest
}

function isFile({ path }: ImportInput): boolean {
  return path !== '-' && statSync(path).isFile()
}

/** Throws `malformed` if the inputs are not those that an earlier run has read. */
export async function assertSameFiles({ inputs }: ImportPlan, { files }: Position, io: Io): Promise<void> {
  for (const [index, { size, bytes, hash }] of files.entries()) {
    const input = must(inputs[index])
    const fd = openSync(input.path, 'r')
    try {
      const stats = fstatSync(fd)
      const isSame = stats.isFile() && (size === undefined || size === stats.size)
      if (!isSame || (await hashOf(fd, bytes, io)) !== hash) throw changedInput(input.name)
    } finally {
      closeSync(fd)
    }
  }
}

async function hashOf(fd: number, bytes: number, io: Io): Promise<string> {
  const hash = createHash('sha256')
  const block = Buffer.alloc(1_048_576)
  for (let left = bytes; left > 0; ) {
    const length = readSync(fd, block, 0, Math.min(left, block.length), null)
    if (length === 0) break
    hash.update(block.subarray(0, length))
    left -= length
    await checkSignal(io.signal)
  }
  return hash.digest('base64url')
}

function changedInput(name: string): PlantsError {
  return malformed(
    `${name} is not the file that an earlier run has begun to import`,
    'To import all of it, add --restart, and --if-exists same for what is stored',
  )
}
