import { type Logger, pino } from 'pino'
import { escapeControlChars } from '../platform/escape.js'
import type { Output } from '../platform/io.js'

/** What an exchange was about; never a token, never a body. */
export interface Exchange {
  requestId?: string
  status?: number
  /** "created", "described", "aborted", or the `error` value of a refusal */
  outcome: string
  milliseconds?: number | undefined
  /** the name of the token */
  token?: string | undefined
  method?: string | undefined
  path?: string | undefined
  /** the address of the caller */
  from?: string | undefined
  /** what the parser of node:http says of a request that it refused */
  code?: string
}

export type Log = Logger

/** The log of a service: lines of JSON for programs, short ones for people. */
export function openLog(output: Output, level: string): Log {
  const isForPeople = output.isTerminal
  const write = async (line: string) => output.log(isForPeople ? forPeople(line) : line)
  return pino({ level }, { write: (line) => void write(line).catch(() => undefined) }) // of a log that fails, nobody can be told
}

function forPeople(line: string): string {
  const { time, level, msg, pid: _, hostname: __, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const clock = new Date(Number(time)).toTimeString().slice(0, 8)
  const words = [clock, labels[String(level)] ?? [], msg ?? [], 'outcome' in fields ? wordsOf(fields) : detailsOf(fields)].flat()
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? String(err.stack).split('\n') : []
  return [words.join(' '), ...stack.map((part) => `  ${part}`)].map((part) => `${escapeControlChars(part)}\n`).join('')
}

function wordsOf({ status, outcome, milliseconds, token, method, path, code }: Record<string, unknown>): unknown[] {
  const time = typeof milliseconds === 'number' ? `${Math.round(milliseconds)} ms` : []
  return [
    status === undefined ? [] : status,
    outcome,
    method ?? [],
    path ?? [],
    time,
    token === undefined ? [] : `token ${token}`,
    code ?? [],
  ].flat()
}

function detailsOf(fields: Record<string, unknown>): string[] {
  return Object.entries(fields).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
}

const labels: Record<string, string> = { 40: 'warning:', 50: 'error:', 60: 'fatal:' }
