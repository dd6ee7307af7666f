/*
 * Converts the numbers with which an Excel workbook stores dates, and the texts with which an
 * OpenDocument spreadsheet does.
 *
 * A date is a number of days, and a time is a fraction of a day: 45292.5 is noon of 1 January 2024.
 * A workbook counts its days from 1904 or from 1900. A workbook that counts from 1900 takes 1900
 * for a leap year, as Lotus 1-2-3 did: day 59 is 28 February, day 60 is 29 February, a day that
 * never existed, and day 61 is 1 March. So the days before day 60 and the days after day 60 are
 * counted from different epochs.
 */
import type { DateKind } from './styles.js'

/**
 * Formats a date or a time as ISO 8601, such as `2024-01-01T12:00:00`. A date at midnight is
 * formatted without its time, as `2024-01-01`.
 *
 * @returns undefined for a number that no date has
 */
export function formatDate(
  days: number,
  kind: Exclude<DateKind, undefined>,
  { is1904 }: { is1904: boolean },
): string | undefined {
  const timeMs = roundTime(days * dayMs)
  if (timeMs < 0) return undefined
  if (kind === 'duration') return formatDuration(timeMs)
  // Day 0 is no day of 1900: a number below 1 is only a time. Day 0 of 1904 is its 1 January.
  const isOnlyTime = timeMs < dayMs && !(is1904 && kind === 'date')
  if (isOnlyTime) return formatClock(timeMs)
  const date = new Date(timeMs + findEpoch(timeMs, is1904))
  const isLeapDay1900 = !is1904 && Math.floor(timeMs / dayMs) === 60
  return isLeapDay1900 || !(date.getTime() <= lastDateMs) ? undefined : formatTimestamp(date)
}

/**
 * Formats a date and time of XML Schema, such as `2024-01-01T12:00:00.5`, in the same way.
 *
 * @returns undefined for a text that is no date of the calendar
 */
export function formatXmlDate(text: string): string | undefined {
  const [, day, hours = '0', minutes = '0', seconds = '0'] =
    /^(\d{4}-\d\d-\d\d)(?:T([01]\d|2[0-3]):([0-5]\d):([0-5]\d(?:\.\d+)?))?$/.exec(text) ?? []
  const dayStartMs = day === undefined ? NaN : Date.parse(day)
  // Date.parse takes 30 February for 1 March.
  if (Number.isNaN(dayStartMs) || new Date(dayStartMs).toISOString().slice(0, 10) !== day)
    return undefined
  return formatTimestamp(new Date(dayStartMs + parseClock(hours, minutes, seconds)))
}

/**
 * Formats a duration of XML Schema, such as `PT14H30M00S`. LibreOffice has it for a time of day.
 *
 * @returns undefined for another text
 */
export function formatXmlDuration(text: string): string | undefined {
  const [, hours, minutes, seconds] =
    /^PT(\d{1,6})H(\d{1,2})M(\d{1,2}(?:[.,]\d+)?)S$/.exec(text) ?? []
  if (hours === undefined || minutes === undefined || seconds === undefined) return undefined
  return formatDuration(parseClock(hours, minutes, seconds.replace(',', '.')))
}

function parseClock(hours: string, minutes: string, seconds: string): number {
  return roundTime(Number(hours) * hourMs + (Number(minutes) * 60 + Number(seconds)) * 1000)
}

function formatTimestamp(date: Date): string | undefined {
  const [day, clock = ''] = date.toISOString().slice(0, -1).split('T')
  const clockTime = clock.replace(/\.000$/, '')
  return clockTime === '00:00:00' ? day : `${day}T${clockTime}`
}

/**
 * Rounds to a whole second if the time is less than 0.75 ms away from one, or else to a
 * millisecond. Some programs write only eight digits of the fraction of a day, and so miss a whole
 * second by up to 0.6 ms. A time that has milliseconds is at least 1 ms away from a whole second.
 */
function roundTime(timeMs: number): number {
  const secondMs = Math.round(timeMs / 1000) * 1000
  return Math.abs(timeMs - secondMs) < 0.75 ? secondMs : Math.round(timeMs)
}

function findEpoch(timeMs: number, is1904: boolean): number {
  if (is1904) return Date.UTC(1904, 0, 1)
  return Date.UTC(1899, 11, timeMs < 60 * dayMs ? 31 : 30)
}

function formatClock(timeMs: number): string {
  return new Date(timeMs)
    .toISOString()
    .slice(11, -1)
    .replace(/\.000$/, '')
}

/** Spreadsheets show a duration as `36:00:00`. ISO 8601 has no clock time above 24 hours. */
function formatDuration(timeMs: number): string {
  const hours = Math.floor(timeMs / hourMs)
  return String(hours).padStart(2, '0') + formatClock(timeMs % hourMs).slice(2)
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** Excel has no date after the year 9999, and a year with five digits is not ISO 8601. */
const lastDateMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
