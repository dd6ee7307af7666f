import { type Logger, pino } from 'pino'
import { escapeControlChars } from '../platform/escape.js'
import type { Output } from '../platform/io.js'

/**
 * A line of the access log: `requestId`, `status`, `token` (its name), `method`, `path` (only of a route, since any other may contain a
 * token), `from` (the address of the client), or the `code` of a parser error. Never contains a token or a body.
 */
export interface AccessLogEntry {
  /** "created", "read", "replaced", "deleted", "described", "aborted", or an `error` value */
  outcome: string
  milliseconds?: number | undefined
  [field: string]: unknown
}

export interface AccessLog {
  record(entry: AccessLogEntry): void
  /** Logs an error that the client did not cause. */
  error(error: unknown, requestId?: string): void
}

/** Opens the log of a service: JSON lines, or shorter text on a terminal. Ignores write errors. */
export function openLog(output: Output, level: string): Logger {
  const { isTerminal } = output
  const ignore = () => undefined
  let latest: Promise<void> | undefined
  const write = (line: string) => {
    try {
      const written = output.log(isTerminal ? formatForTerminal(line) : line)
      if (written !== latest) written.catch(ignore) // lines may share a promise
      latest = written
    } catch {
      // A request must not fail because of its log line.
    }
  }
  return pino({ level }, { write })
}

function formatForTerminal(line: string): string {
  const { time, level, msg, pid: _, hostname: __, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const { status, outcome, milliseconds, token, method, path, code } = fields
  const clock = new Date(Number(time)).toTimeString().slice(0, 8)
  const duration = typeof milliseconds === 'number' ? `${Math.round(milliseconds)} ms` : undefined
  const request = [status, outcome, method, path, duration, token && `token ${token}`, code]
  const details = Object.entries(fields).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const words = [clock, labels[String(level)], msg, ...(outcome === undefined ? details : request)]
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? String(err.stack).split('\n') : []
  const lines = [words.filter((word) => word !== undefined).join(' '), ...stack.map((part) => `  ${part}`)]
  return lines.map((text) => `${escapeControlChars(text)}\n`).join('')
}

const labels: Record<string, string> = { 40: 'warning:', 50: 'error:', 60: 'fatal:' }
