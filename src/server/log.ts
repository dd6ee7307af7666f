import { type DestinationStream, type Logger, pino } from 'pino'
import { escapeControlChars } from '../platform/escape.js'
import type { Output } from '../platform/io.js'

/**
 * docs/serve.md describes the fields. `path` is that of a route, since any other may contain a token, and `token` is
 * the name of the token.
 */
export interface AccessLogEntry {
  /** "created", "read", "replaced", "deleted", "described", "aborted", "closed", or an `error` value */
  outcome: string
  milliseconds?: number | undefined
  [field: string]: unknown
}

export interface AccessLog {
  record(entry: AccessLogEntry): void
  /** that the client did not cause */
  error(error: unknown, requestId?: string): void
}

export interface LogOptions {
  output: Output
  level: string
  /** in milliseconds */
  delay: number
}

/**
 * JSON lines, or shorter text on a terminal. Lines of requests are written together if others were written in the last
 * `delay` milliseconds, at the latest by `flush`: a crash can lose these. Ignores write errors.
 */
export function openLog({ output, level, delay }: LogOptions): Logger {
  const { isTerminal } = output
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    const written = lines
    lines = ''
    if (written === '') return
    if (delay > 0) timer = setTimeout(flush, delay).unref()
    try {
      output.log(written).catch(() => undefined)
    } catch {
      // A request must not fail because of its log line.
    }
  }
  const write = (line: string) => {
    lines += isTerminal ? formatAsText(line) : line
    const isOfRequest = line.includes('"outcome":') // in a text, the quotes would be escaped
    if (timer === undefined || !isOfRequest || lines.length >= 65_536) flush()
  }
  const destination: DestinationStream & { flush(): void } = { write, flush } // `flush` is called by that of the logger
  const formatters = { level: (name: string) => ({ level: name }) }
  // Without the process id and the host, which are the same in all lines.
  return pino({ level, base: null, timestamp: isoTime(), formatters }, destination)
}

/** Formats each millisecond once, which halves the cost of a line under load. */
function isoTime(): () => string {
  let formatted = 0
  let text = ''
  return () => {
    const now = Date.now()
    if (now !== formatted) text = `,"time":"${new Date(now).toISOString()}"`
    formatted = now
    return text
  }
}

function formatAsText(line: string): string {
  const { time, level, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const { status, outcome, milliseconds, token, method, path, code, reason, from } = fields
  const clock = new Date(String(time)).toTimeString().slice(0, 8)
  const duration = typeof milliseconds === 'number' ? `${Math.round(milliseconds)} ms` : undefined
  const request = [status, outcome, method, path, duration, token && `token ${token}`, code, reason, reason && from]
  const details = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const words = [clock, labels[String(level)], msg, ...(outcome === undefined ? details : request)]
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? String(err.stack).split('\n') : []
  const lines = [words.filter((word) => word !== undefined).join(' '), ...stack.map((part) => `  ${part}`)]
  return lines.map((text) => `${escapeControlChars(text)}\n`).join('')
}

const labels: Record<string, string> = { warn: 'warning:', error: 'error:' }
