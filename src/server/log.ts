import { type DestinationStream, type Logger, pino } from 'pino'
import { escapeControlChars } from '../platform/escape.js'
import type { Output } from '../platform/io.js'

/**
 * docs/serve.md describes the fields. `path` is that of a route, since any other may contain a token, and `token` is
 * the name of the token.
 */
export interface AccessLogEntry {
  /** "created", "read", "replaced", "deleted", "described", "aborted", or an `error` value */
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
}

/**
 * JSON lines, or shorter text on a terminal. The lines after one of the last 100 ms are written together, at the latest
 * by `flush`. Ignores write errors.
 */
export function openLog({ output, level }: LogOptions): Logger {
  const { isTerminal } = output
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (lines === '') return
    output.log(lines).catch(() => undefined)
    lines = ''
    timer = setTimeout(flush, 100).unref()
  }
  const write = (line: string) => {
    try {
      lines += isTerminal ? formatAsText(line) : line
      if (timer === undefined || lines.length >= 65_536) flush()
    } catch {
      // A request must not fail because of its log line.
    }
  }
  const destination: DestinationStream = Object.assign({ write }, { flush }) // `flush` is called by that of the logger
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
  const { status, outcome, milliseconds, token, method, path, code } = fields
  const clock = new Date(String(time)).toTimeString().slice(0, 8)
  const duration = typeof milliseconds === 'number' ? `${Math.round(milliseconds)} ms` : undefined
  const request = [status, outcome, method, path, duration, token && `token ${token}`, code]
  const details = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const words = [clock, labels[String(level)], msg, ...(outcome === undefined ? details : request)]
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? String(err.stack).split('\n') : []
  const lines = [words.filter((word) => word !== undefined).join(' '), ...stack.map((part) => `  ${part}`)]
  return lines.map((text) => `${escapeControlChars(text)}\n`).join('')
}

const labels: Record<string, string> = { warn: 'warning:', error: 'error:' }
