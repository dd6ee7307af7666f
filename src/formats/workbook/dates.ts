import type { DateKind } from './styles.js'

/**
 * Formats the number of a date, in days, as ISO 8601. Returns undefined for a number that no date
 * has. A workbook counts the days from 1900, where it takes 1900 for a leap year as Lotus 1-2-3
 * did, or from 1904.
 */
export function formatDate(
  days: number,
  kind: Exclude<DateKind, undefined>,
  { is1904 }: { is1904: boolean },
): string | undefined {
  const time = roundTime(days * dayMs)
  if (time < 0) return undefined
  if (kind === 'duration') return formatDuration(time)
  const isTimeAlone = time < dayMs && !(is1904 && kind === 'date')
  if (isTimeAlone) return formatClock(time)
  const date = new Date(time + findEpoch(time, is1904))
  const isImpossible = !is1904 && Math.floor(time / dayMs) === 60 // 29 February 1900
  if (isImpossible || !(date.getTime() <= lastDate)) return undefined
  const [day, clock = ''] = date.toISOString().slice(0, -1).split('T')
  const shownClock = clock.replace(/\.000$/, '')
  return shownClock === '00:00:00' ? day : `${day}T${shownClock}`
}

/**
 * A fraction of a day with eight digits misses a whole second by up to 0.6 ms, if it is cut off. A
 * fraction that means a whole millisecond stays one.
 */
function roundTime(milliseconds: number): number {
  const seconds = Math.round(milliseconds / 1000) * 1000
  return Math.abs(milliseconds - seconds) < 0.75 ? seconds : Math.round(milliseconds)
}

function findEpoch(time: number, is1904: boolean): number {
  if (is1904) return Date.UTC(1904, 0, 1)
  return Date.UTC(1899, 11, time < 60 * dayMs ? 31 : 30)
}

function formatClock(time: number): string {
  return new Date(time)
    .toISOString()
    .slice(11, -1)
    .replace(/\.000$/, '')
}

/** Such as `36:00:00`: as spreadsheets show it, because ISO 8601 has no clock above 24 hours. */
function formatDuration(time: number): string {
  const hours = Math.floor(time / hourMs)
  return String(hours).padStart(2, '0') + formatClock(time % hourMs).slice(2)
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const lastDate = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
