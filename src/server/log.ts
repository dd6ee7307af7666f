import { pino, stdTimeFunctions } from 'pino'
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

type Fields = Record<string, unknown>
type Writer = Record<'info' | 'warn' | 'error', (fields: Fields, message?: string) => void>

/** Short text on a terminal, JSON lines elsewhere. Ignores write errors. A crash can lose the lines of `delay`. */
export class Log {
  readonly #options: LogOptions
  readonly #writer: Writer
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  constructor(options: LogOptions) {
    const { output, level } = options
    this.#options = options
    this.#writer = output.isTerminal ? textWriter(level, this.#add) : jsonWriter(level, this.#add)
  }

  record(entry: AccessLogEntry): void {
    this.#writer.info(entry)
    this.#options.onRequest?.(entry)
  }

  info(message: string, fields: Fields = {}): void {
    this.#writer.info(fields, message)
    void this.flush()
  }

  warn(message: string): void {
    this.#writer.warn({}, message)
    void this.flush()
  }

  /** Of a failure that the client did not cause. Only a defect has a stack. */
  error(error: unknown, requestId?: string): void {
    if (error instanceof PlantsError && error.type !== 'defect') {
      const { type: code, message, cause } = error
      const reason = cause === undefined || message.includes(reasonOf(cause)) ? undefined : reasonOf(cause)
      this.#writer.error({ requestId, code, reason }, message)
    } else this.#writer.error({ requestId, err: error }, 'failed')
    void this.flush()
  }

  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { output, redact } = this.#options
    const lines = this.#lines
    this.#lines = ''
    try {
      if (lines !== '') await output.log(redact(lines))
    } catch {
      // A request must not fail because of its log line.
    }
  }

  readonly #add = (line: string) => {
    this.#lines += line
    const { delay } = this.#options
    if (delay === 0 || this.#lines.length >= 65_536) void this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), delay).unref()
  }
}

function jsonWriter(level: string, write: (line: string) => void): Writer {
  const formatters = { level: (name: string) => ({ level: name }) }
  // `base: null` leaves out the process id and the host, which are the same in all lines.
  return pino({ level, base: null, timestamp: stdTimeFunctions.isoTime, formatters }, { write })
}

function textWriter(level: string, write: (line: string) => void): Writer {
  const levels = ['info', 'warn', 'error', 'silent']
  const writeAs = (severity: string, label?: string) => (fields: Fields, message?: string) => {
    if (levels.indexOf(severity) < levels.indexOf(level)) return
    const { err, ...others } = fields
    const words = [new Date().toTimeString().slice(0, 8), label, message, ...wordsOf(others)]
    const stack = err instanceof Error ? `\n${err.stack}`.replaceAll('\n', '\n  ') : ''
    const line = words.filter((word) => word !== undefined).join(' ')
    write(`${escapeControlChars(line)}${escapeControlCharsInLines(stack)}\n`)
  }
  return { info: writeAs('info'), warn: writeAs('warn', 'warning:'), error: writeAs('error', 'error:') }
}

/** The words of a line: for a request, the values that a person looks for; for anything else, all fields. */
function wordsOf(fields: Fields): unknown[] {
  const { status, outcome, method, path, milliseconds, token, code, reason, from } = fields
  if (outcome !== undefined) {
    const duration = typeof milliseconds === 'number' ? `${Math.round(milliseconds)} ms` : undefined
    return [status, outcome, method, path, duration, token && `token ${token}`, code, reason, reason && from]
  }
  return Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
}
