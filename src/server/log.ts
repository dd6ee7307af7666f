import { pino, stdTimeFunctions } from 'pino'
import { escapeControlChars } from '../platform/escape.js'
import type { Output } from '../platform/io.js'

/** docs/serve.md describes the fields. */
export interface AccessLogEntry {
  /** "created", "read", "updated", "deleted", "described", "preflight", "aborted", "closed", or an `error` value */
  outcome: string
  status?: number
  milliseconds?: number | undefined
  method?: string | undefined
  /** of the route; of a request that has none, what was requested, without its query and tokens */
  path?: string | undefined
  /** the name of the token */
  token?: string | undefined
  requestId?: string
  /** why the HTTP parser rejected the input */
  code?: string
  /** why the service closed the connection */
  reason?: string
  /** the address of the client */
  from?: string | undefined
}

export interface AccessLog {
  record(entry: AccessLogEntry): void
  /** that the client did not cause */
  error(error: unknown, requestId?: string): void
}

export interface LogOptions {
  output: Output
  /** the least severe level that is written, or "silent" */
  level: string
  /** milliseconds for which lines of requests are collected, to be written together */
  delay: number
}

type Level = 'info' | 'warn' | 'error'
type Fields = Record<string, unknown>
type Writer = (level: Level, fields: Fields, message?: string) => void

/** Short text on a terminal, JSON lines elsewhere. Ignores write errors. A crash can lose the lines of `delay`. */
export class Log implements AccessLog {
  readonly #output: Output
  readonly #delay: number
  readonly #write: Writer
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  constructor({ output, level, delay }: LogOptions) {
    this.#output = output
    this.#delay = delay
    this.#write = output.isTerminal ? textWriter(level, this.#add) : jsonWriter(level, this.#add)
  }

  record(entry: AccessLogEntry): void {
    this.#write('info', { ...entry })
  }

  info(message: string, fields: Fields = {}): void {
    this.#write('info', fields, message)
    this.flush()
  }

  warn(message: string): void {
    this.#write('warn', {}, message)
    this.flush()
  }

  error(error: unknown, requestId?: string): void {
    this.#write('error', { requestId, err: error }, 'failed')
    this.flush()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#lines
    this.#lines = ''
    try {
      if (lines !== '') this.#output.log(lines).catch(() => undefined)
    } catch {
      // A request must not fail because of its log line.
    }
  }

  readonly #add = (line: string) => {
    this.#lines += line
    if (this.#delay === 0 || this.#lines.length >= 65_536) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), this.#delay).unref()
  }
}

function jsonWriter(level: string, write: (line: string) => void): Writer {
  const formatters = { level: (name: string) => ({ level: name }) }
  // Without the process id and the host, which are the same in all lines.
  const logger = pino({ level, base: null, timestamp: stdTimeFunctions.isoTime, formatters }, { write })
  return (severity, fields, message) => logger[severity](fields, message)
}

function textWriter(level: string, write: (line: string) => void): Writer {
  const levels = ['info', 'warn', 'error', 'silent']
  const labels = { info: undefined, warn: 'warning:', error: 'error:' }
  return (severity, { err, ...fields }, message) => {
    if (levels.indexOf(severity) < levels.indexOf(level)) return
    const words = [new Date().toTimeString().slice(0, 8), labels[severity], message, ...wordsOf(fields)]
    const stack = err instanceof Error ? `${err.stack}`.split('\n') : []
    for (const line of [words.filter((word) => word !== undefined).join(' '), ...stack.map((part) => `  ${part}`)])
      write(`${escapeControlChars(line)}\n`)
  }
}

/** Of a request, what a person looks for, without names; of anything else, all fields. */
function wordsOf(fields: Fields): unknown[] {
  const { status, outcome, method, path, milliseconds, token, code, reason, from } = fields
  if (outcome !== undefined) {
    const duration = typeof milliseconds === 'number' ? `${Math.round(milliseconds)} ms` : undefined
    return [status, outcome, method, path, duration, token && `token ${token}`, code, reason, reason && from]
  }
  return Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
}
