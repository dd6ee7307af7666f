/**
 * Writes the log of a service: text on a terminal, and lines of JSON elsewhere. Lines of requests
 * are collected for a moment and written together, because a write for each would take as long as
 * the request.
 */
import { describeReason, PlantsError } from '../errors.js'
import { escapeControlChars, escapeControlCharsInLines } from '../platform/escape.js'
import type { Output } from '../platform/io.js'

/** A request is logged with these fields, which docs/monitoring.md describes. */
export type AccessLogEntry = Readonly<{
  requestId?: string
  status?: number | undefined
  outcome: string
  milliseconds?: number
  token?: string | undefined
  method?: string | undefined
  path?: string | undefined
  plantId?: string | undefined
  code?: string
  from?: string | undefined
}>

export interface LogOptions {
  output: Output
  /**
   * Lines of this level and of more important levels are written. With "silent", no lines are
   * written.
   */
  level: string
  /** How long lines of requests are collected before they are written. */
  delayMs: number
  /** Replaces the secrets in lines by `***`. */
  redact(lines: string): string
  onRequest?(entry: AccessLogEntry): void
}

type Fields = Record<string, unknown>

/** These are in the order of their importance. */
const levels = ['info', 'warn', 'error', 'silent']

/**
 * When this many characters of lines are collected, they are written at once. If the reader of the
 * log is too slow, the output drops the whole block of lines that would exceed its buffer of 1 MiB.
 * So the smaller a block is, the fewer lines are dropped.
 */
const blockLength = 65_536

/** A crash loses the lines that were collected in the last `delayMs`. */
export class Log {
  readonly #isText: boolean
  /** These lines are not written yet. */
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly options: LogOptions) {
    // `isTerminal` asks the system, so it is read once, and not for each line.
    this.#isText = options.output.isTerminal
  }

  record(entry: AccessLogEntry): void {
    this.options.onRequest?.(entry)
    this.#write('info', entry, this.options.delayMs)
  }

  info(message: string, fields: Fields = {}): void {
    this.#write('info', { msg: message, ...fields })
  }

  warn(message: string): void {
    this.#write('warn', { msg: message })
  }

  /** Logs a failure that no client has caused. The stack is logged only for an internal error. */
  error(error: unknown, requestId?: string): void {
    if (error instanceof PlantsError && error.kind !== 'internalError') {
      const { kind: code, message: msg, cause } = error
      this.#write('error', { msg, requestId, code, reason: cause && describeReason(cause) })
    } else {
      const stack = error instanceof Error ? error.stack : String(error)
      this.#write('error', { msg: 'failed', requestId, stack })
    }
  }

  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { output, redact } = this.options
    const lines = this.#lines
    this.#lines = ''
    try {
      if (lines !== '') await output.log(redact(lines))
    } catch {
      // A request must not fail because of its log line.
    }
  }

  #write(level: 'info' | 'warn' | 'error', fields: Fields, delayMs = 0): void {
    if (levels.indexOf(level) < levels.indexOf(this.options.level)) return
    const time = new Date().toISOString()
    this.#lines += this.#isText
      ? formatTextLine(level, time, fields)
      : `{"level":"${level}","time":"${time}",${JSON.stringify(fields).slice(1)}\n`
    if (delayMs === 0 || this.#lines.length >= blockLength) void this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), delayMs).unref()
  }
}

/** Formats a line such as `12:30:00 warning: MESSAGE name=value`, with a stack on further lines. */
function formatTextLine(level: string, time: string, { msg, stack, ...details }: Fields): string {
  const label = { warn: 'warning:', error: 'error:' }[level]
  const pairs = Object.entries(details).filter(([, value]) => value !== undefined)
  const parts = [label, msg, ...pairs.map((pair) => pair.join('='))].filter((part) => part)
  const line = [time.slice(11, 19), ...parts].join(' ')
  const stackLines = stack === undefined ? '' : `\n${stack}`.replaceAll('\n', '\n  ')
  return `${escapeControlChars(line)}${escapeControlCharsInLines(stackLines)}\n`
}
