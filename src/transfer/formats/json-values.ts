import type { Format, FormatState } from './format.js'
import type { Intake } from './intake.js'
import { JsonRecord, type RecordState, type Situation } from './json-record.js'
import { notJson, readJson } from './json-text.js'
import { LineCounter } from './line-counter.js'
import type { Portion } from './portion.js'
import { RecordError } from './record-error.js'
import { longestRecord, recordTooLarge } from './record-limit.js'

/** A JSON array of plants, or plants one behind another, with or without white space between them. */
export class JsonValues implements Format {
  readonly #intake: Intake
  readonly #lines = new LineCounter()
  #phase: Phase = 'start'
  /** the record that was cut */
  #record: JsonRecord | undefined
  /** whether that record is too long to be kept, and goes by in pieces */
  #isPassing = false
  /** whether nothing more is to be said of the end of the array */
  #isClosed = false
  /** how many bytes from the place where the next read begins have been taken for a part of a broken record */
  #careful = 0

  constructor(intake: Intake) {
    this.#intake = intake
  }

  read(portion: Portion, { start, end }: { start: number; end: number }, isLast: boolean): number {
    const reading: Reading = { portion, bytes: portion.bytes, start, end, isLast, carefulTo: start + this.#careful }
    this.#lines.begin(portion.bytes, start)
    let at = start
    for (let next = -1; at < end && next !== at && !portion.isFull; ) {
      next = at
      at = this.#step(reading, at)
    }
    if (isLast && at === end) this.#finish(reading)
    this.#lines.at(at)
    this.#careful = Math.max(reading.carefulTo - at, 0)
    return at
  }

  save(): FormatState {
    const { line, column } = this.#lines
    const state = { line, column, careful: this.#careful, phase: this.#phase, isClosed: this.#isClosed }
    return this.#record && this.#isPassing ? { ...state, record: JSON.stringify(this.#record.save()) } : state
  }

  restore(state: FormatState): void {
    // It is what `save` gave.
    const { line, column, careful, phase, isClosed, record } = state as unknown as Saved
    this.#lines.line = line
    this.#lines.column = column
    this.#careful = careful
    this.#phase = phase
    this.#isClosed = isClosed
    this.#isPassing = record !== undefined
    this.#record = record === undefined ? undefined : JsonRecord.restore(JSON.parse(record) as RecordState)
  }

  /** Takes what comes next; gives the place behind it, or behind the white space before what is not whole. */
  #step(reading: Reading, from: number): number {
    if (this.#record && this.#isPassing) return this.#pass(this.#record, reading, from)
    const at = skipSpace(reading, from)
    const byte = reading.bytes[at]
    if (at === reading.end) return at
    if (this.#phase === 'start' && byte === bracket) return this.#enter('first', at)
    if (this.#phase === 'start') this.#phase = 'values'
    if (this.#phase !== 'values' && (byte === bracketEnd || byte === comma)) return this.#separate(reading, at, byte)
    if (this.#phase === 'behind') this.#goOn(textBehind, reading, at)
    if (this.#phase === 'between' && beginsValue.includes(byte ?? 0)) this.#goOn('a comma is missing before this element', reading, at)
    return this.#value(reading, at)
  }

  #enter(phase: Phase, at: number): number {
    this.#phase = phase
    return at + 1
  }

  #separate(reading: Reading, at: number, byte: number): number {
    const isMissing = this.#phase === 'next' || (this.#phase === 'first' && byte === comma)
    if (isMissing) this.#complain(`an element is missing before this "${String.fromCharCode(byte)}"`, reading, at)
    if (this.#phase === 'behind') this.#complain(textBehind, reading, at)
    if (byte === bracketEnd) this.#isClosed = true
    return this.#enter(byte === comma ? 'next' : 'behind', at)
  }

  /** Notes what is wrong in front of an element, once. */
  #goOn(reason: string, reading: Reading, at: number): void {
    this.#complain(reason, reading, at)
    this.#phase = 'next'
  }

  #value(reading: Reading, at: number): number {
    const { bytes, end, isLast } = reading
    const until = Math.min(end, at + longestRecord + 1)
    this.#record ??= new JsonRecord(this.#situationAt(reading, at))
    const found = this.#record.find(bytes, at, until, isLast && until === end)
    const { length, looked } = this.#record
    if (found === 'cut' && length <= longestRecord) return at
    if (found === 'cut') return this.#beginToPass(this.#record, reading, at, until)
    const next = at + length
    const textEnd = found === 'broken' ? this.#trim(bytes, at, next) : next
    const place = this.#placeOf(reading, at, textEnd)
    if (place === undefined) return at
    if (looked > length) reading.carefulTo = Math.max(reading.carefulTo, at + looked)
    this.#take(reading, place, length > longestRecord ? undefined : textEnd)
    return this.#leave(reading, found === 'broken', Math.max(next, place.end))
  }

  #situationAt({ carefulTo }: Reading, at: number): Situation {
    this.#lines.at(at)
    return { column: this.#lines.column, isInArray: this.#phase !== 'values', isCareful: at < carefulTo }
  }

  /** @param textEnd where its text ends, unless it is too long to be read */
  #take({ portion, bytes }: Reading, { start, end }: { start: number; end: number }, textEnd: number | undefined): void {
    const place = { start, end, line: this.#lines.at(start) }
    const value =
      textEnd === undefined
        ? recordTooLarge()
        : readJson(bytes, start, textEnd, { line: place.line, idKey: this.#intake.idKey, isSuspect: portion.isSuspect })
    if (value instanceof RecordError) portion.addProblem(value, place)
    else this.#intake.take(value, place, portion)
  }

  #beginToPass(record: JsonRecord, { portion }: Reading, start: number, end: number): number {
    portion.addProblem(recordTooLarge(), { start, end, line: this.#lines.at(start) })
    record.forget()
    this.#isPassing = true
    return end
  }

  /** Goes on in a record that is too long to be kept. */
  #pass(record: JsonRecord, reading: Reading, at: number): number {
    const found = record.find(reading.bytes, at, reading.end, reading.isLast)
    const next = at + record.length
    const place = found === 'cut' ? { start: at, end: reading.end } : this.#placeOf(reading, at, next)
    if (place === undefined) return at
    if (place.end > at) reading.portion.addProblem(undefined, { ...place, line: this.#lines.at(at) })
    if (found !== 'cut') return this.#leave(reading, found === 'broken', Math.max(next, place.end))
    record.forget()
    return reading.end
  }

  #leave({ end, isLast }: Reading, isBroken: boolean, next: number): number {
    this.#record = undefined
    this.#isPassing = false
    if (this.#phase === 'values') return next
    this.#phase = isBroken ? 'mended' : 'between'
    // Of an array that ends inside a broken element, that has been said with the element.
    if (isBroken && isLast && next === end) this.#isClosed = true
    return next
  }

  #finish(reading: Reading): void {
    if (this.#phase === 'start' || this.#phase === 'values' || this.#isClosed || this.#isPassing) return
    this.#complain('the array has no "]" at its end', reading, reading.end)
  }

  /** The place of a record: where it stands alone, with the line break behind it. Nothing when that may still come. */
  #placeOf({ bytes, end, isLast }: Reading, from: number, to: number): { start: number; end: number } | undefined {
    if (this.#phase !== 'values') return { start: from, end: to }
    const behind = bytes[to] === carriageReturn && to < end ? to + 1 : to
    if (behind === end) return isLast ? { start: from, end: to } : undefined
    return { start: from, end: bytes[behind] === lineFeed ? behind + 1 : to }
  }

  /** Where a broken record ends without the white space and, in an array, the commas behind it. */
  #trim(bytes: Buffer, start: number, end: number): number {
    let at = end
    while (at > start + 1 && (isSpace(bytes[at - 1]) || (bytes[at - 1] === comma && this.#phase !== 'values'))) at -= 1
    return at
  }

  #complain(reason: string, { portion }: Reading, at: number): void {
    portion.addProblem(notJson(reason), { start: at, end: at, line: this.#lines.at(at) })
  }
}

/** Where in an input it is: before anything; in an array, before its first element, behind one, behind a broken one with or without its comma, or behind a comma; behind the array; among values. */
type Phase = 'start' | 'first' | 'between' | 'mended' | 'next' | 'behind' | 'values'

interface Saved {
  line: number
  column: number
  careful: number
  phase: Phase
  isClosed: boolean
  record: string | undefined
}

interface Reading {
  portion: Portion
  bytes: Buffer
  start: number
  end: number
  isLast: boolean
  /** up to where bytes have been taken for a part of a broken record */
  carefulTo: number
}

function skipSpace({ bytes, end }: Reading, from: number): number {
  let at = from
  while (at < end && isSpace(bytes[at])) at += 1
  return at
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === lineFeed || byte === carriageReturn || byte === 0x09
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
const comma = 0x2c
const bracket = 0x5b
const bracketEnd = 0x5d

const textBehind = 'text behind the "]" that ends the array'

/** The bytes that values of JSON begin with. */
const beginsValue = Buffer.from('{["-0123456789tfn')
