import { PlantsError, reasonOf } from '../errors.js'
import { escapeControlChars, escapeControlCharsInLines } from '../platform/escape.js'
import type { Output } from '../platform/io.js'

/** The fields of a line: docs/serve.md describes them. */
export interface AccessLogEntry {
  outcome: string
  milliseconds?: number
  [field: string]: string | number | undefined
}

export interface LogOptions {
  output: Output
  /** The least that is written, or "silent". */
  level: string
  /** Lines of requests are collected for so long. */
  delayMs: number
  /** Hides secrets in what is written. */
  redact(lines: string): string
  onRequest?(entry: AccessLogEntry): void
}

type Fields = Record<string, unknown>

const levels = ['info', 'warn', 'error', 'silent']

/** Text on a terminal, JSON lines elsewhere. A crash can lose the lines of `delayMs`. */
export class Log {
  readonly #options: LogOptions
  readonly #isText: boolean
  #lines = ''
  #now = 0
  #time = ''
  #timer: NodeJS.Timeout | undefined

  constructor(options: LogOptions) {
    this.#options = options
    this.#isText = options.output.isTerminal // which asks the system
  }

  record(entry: AccessLogEntry): void {
    this.#options.onRequest?.(entry)
    this.#write('info', entry, this.#options.delayMs)
  }

  info(message: string, fields: Fields = {}): void {
    this.#write('info', { msg: message, ...fields })
  }

  warn(message: string): void {
    this.#write('warn', { msg: message })
  }

  /** Of a failure that the client did not cause. Only a defect has a stack. */
  error(error: unknown, requestId?: string): void {
    if (error instanceof PlantsError && error.kind !== 'defect') {
      const { kind: code, message: msg, cause } = error
      this.#write('error', { msg, requestId, code, reason: cause && reasonOf(cause) })
    } else {
      const stack = error instanceof Error ? error.stack : String(error)
      this.#write('error', { msg: 'failed', requestId, stack })
    }
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

  #write(level: 'info' | 'warn' | 'error', fields: Fields, delayMs = 0): void {
    if (levels.indexOf(level) < levels.indexOf(this.#options.level)) return
    const now = Date.now()
    if (now !== this.#now) this.#time = new Date(now).toISOString() // a quarter of a line's cost
    this.#now = now
    this.#lines += this.#isText
      ? textOf(level, this.#time, fields)
      : `{"level":"${level}","time":"${this.#time}",${JSON.stringify(fields).slice(1)}\n`
    if (delayMs === 0) void this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), delayMs).unref()
  }
}

/** Such as `12:30:00 warning: MESSAGE name=value`. */
function textOf(level: string, time: string, { msg, stack, ...others }: Fields): string {
  const label = { warn: 'warning:', error: 'error:' }[level]
  const pairs = Object.entries(others).filter(([, value]) => value !== undefined)
  const words = [label, msg, ...pairs.map((pair) => pair.join('='))].filter((word) => word)
  const line = [time.slice(11, 19), ...words].join(' ')
  const lines = stack === undefined ? '' : `\n${stack}`.replaceAll('\n', '\n  ')
  return `${escapeControlChars(line)}${escapeControlCharsInLines(lines)}\n`
}
