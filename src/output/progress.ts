import type { Io } from '../platform/io.js'
import { grouped } from '../platform/values.js'

/** `part` is from 0 to 1, where that is known. */
type ProgressSnapshot = { done: number; rejected: number; part: number | undefined }

export type Progress = ReturnType<typeof progressLine>

/** One line on a terminal that shows how far an import is; nothing where `isShown` is false. */
export function progressLine({ now, stderr }: Io, isShown: boolean) {
  const start = now()
  let last = 0
  let isDrawn = false
  return {
    /** Draws it, at most ten times a second. */
    show: (snapshot: () => ProgressSnapshot): void => {
      const time = now()
      if (!isShown || time - last < 100) return
      last = time
      isDrawn = true
      const text = describe(snapshot(), (time - start) / 1000).slice(0, stderr.columns - 1)
      void stderr.log(`\r${text}\u001b[K`)
    },
    /** Takes it away, for what is written next. */
    clear: async (): Promise<void> => {
      if (!isDrawn) return
      isDrawn = false
      last = 0
      await stderr.write('\r\u001b[K')
    },
  }
}

function describe({ done, rejected, part }: ProgressSnapshot, seconds: number): string {
  const rate = seconds > 0 ? done / seconds : 0
  const left = part === undefined || part <= 0 || seconds < 1 ? '' : `, ${clockOf((seconds * (1 - part)) / part)} left`
  const share = part === undefined ? '' : `${Math.floor(part * 100)} %, `
  return `${share}${grouped(done)} done${rejected > 0 ? `, ${grouped(rejected)} refused` : ''}, ${grouped(Math.round(rate))}/s${left}`
}

/** A time for people, in whole seconds: 40 s, 1 min 30 s, 2 h 5 min. */
export function clockOf(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  const minutes = Math.floor(whole / 60)
  if (whole < 60) return `${whole} s`
  return whole < 3600 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
