import { pino } from 'pino'
import { PlantsError, reasonOf } from '../platform/errors.js'
import { escapeControlChars, escapeControlCharsInLines } from '../platform/escape.js'
import type { Output } from '../platform/io.js'

/** The fields of a line: docs/serve.md describes them. */
export type AccessLogEntry = {
  outcome: string
  status?: number | undefined
  milliseconds?: number | undefined
  method?: string | undefined
  path?: string | undefined
  token?: string | undefined
  requestId?: string
  code?: string
  reason?: string | undefined
  from?: string | undefined
}

export interface LogOptions {
  output: Output
  /** The least severe level that is written, or "silent". */
  level: string
  /** Lines of requests are collected for so many milliseconds. */
  delay: number
  /** Hides secrets in what is written. */
  redact(lines: string): string
  /** Counts the requests, too. */
  onRequest?(entry: AccessLogEntry): void
}

type Level = 'info' | 'warn' | 'error'
type Fields = Record<string, unknown>

interface Line {
  level: Level
  /** In milliseconds since 1970. */
  time: number
  fields: Fields
  message: string | undefined
}

const levels = ['info', 'warn', 'error', 'silent']

/** The most lines that are written together: about 64 KiB. */
const maxLines = 256

/** Short text on a terminal, JSON lines elsewhere. Ignores write errors. A crash can lose the lines of `delay`. */
export class Log {
  readonly #options: LogOptions
  readonly #format: (lines: readonly Line[]) => string
  /** They become text when they are written: many together take less time than each within its request. */
  #lines: Line[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(options: LogOptions) {
    this.#options = options
    this.#format = options.output.isTerminal ? (lines) => lines.map(textOf).join('') : jsonFormat()
  }

  record(entry: AccessLogEntry): void {
    this.#add('info', entry)
    this.#options.onRequest?.(entry)
  }

  info(message: string, fields: Fields = {}): void {
    this.#add('info', fields, message)
    void this.flush()
  }

  warn(message: string): void {
    this.#add('warn', {}, message)
    void this.flush()
  }

  /** Of a failure that the client did not cause. Only a defect has a stack. */
  error(error: unknown, requestId?: string): void {
    if (error instanceof PlantsError && error.kind !== 'defect') {
      const { kind: code, message, cause } = error
      const reason =
        cause === undefined || message.includes(reasonOf(cause)) ? undefined : reasonOf(cause)
      this.#add('error', { requestId, code, reason }, message)
    } else this.#add('error', { requestId, err: error }, 'failed')
    void this.flush()
  }

  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { output, redact } = this.#options
    const lines = this.#lines
    this.#lines = []
    try {
      if (lines.length > 0) await output.log(redact(this.#format(lines)))
    } catch {
      // A request must not fail because of its log line.
    }
  }

  #add(level: Level, fields: Fields, message?: string): void {
    const { level: least, delay } = this.#options
    if (levels.indexOf(level) < levels.indexOf(least)) return
    this.#lines.push({ level, time: Date.now(), fields, message })
    if (delay === 0 || this.#lines.length >= maxLines) void this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), delay).unref()
  }
}

function jsonFormat(): (lines: readonly Line[]) => string {
  let text = ''
  const write = (line: string) => {
    text += line
  }
  const formatters = { level: (name: string) => ({ level: name }) }
  // `base: null` leaves out the process id and the host, which are the same in all lines. The time is that of the call.
  const logger = pino({ base: null, timestamp: false, formatters }, { write })
  return (lines) => {
    text = ''
    for (const { level, time, fields, message } of lines)
      logger[level]({ time: new Date(time).toISOString(), ...fields }, message)
    return text
  }
}

function textOf({ level, time, fields: { err, ...others }, message }: Line): string {
  const label = { info: undefined, warn: 'warning:', error: 'error:' }[level]
  const words = [new Date(time).toTimeString().slice(0, 8), label, message, ...wordsOf(others)]
  const stack = err instanceof Error ? `\n${err.stack}`.replaceAll('\n', '\n  ') : ''
  const line = words.filter((word) => word !== undefined).join(' ')
  return `${escapeControlChars(line)}${escapeControlCharsInLines(stack)}\n`
}

/** The words of a line: for a request, the values that a person looks for; for anything else, all fields. */
function wordsOf(fields: Fields): unknown[] {
  const { status, outcome, method, path, milliseconds, token, code, reason, from } = fields
  if (outcome !== undefined) {
    const duration = typeof milliseconds === 'number' ? `${Math.round(milliseconds)} ms` : undefined
    return [
      status,
      outcome,
      method,
      path,
      duration,
      token && `token ${token}`,
      code,
      reason,
      reason && from,
    ]
  }
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  )
}
