import type { Output } from '../io.js'
import { visible } from '../output.js'

/** Where pino writes: lines of JSON for programs, short ones for people. */
export function logStream(output: Output): { write(line: string): void } {
  return { write: (line) => void output.log(output.isTerminal ? forPeople(line) : line) }
}

function forPeople(line: string): string {
  const { time, level, msg, pid: _, hostname: __, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const clock = new Date(Number(time)).toTimeString().slice(0, 8)
  const details = Object.entries(fields).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const words = [clock, ...(Number(level) > 30 ? [labels[String(level)] ?? ''] : []), ...(msg ? [String(msg)] : []), ...details]
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? String(err.stack).split('\n') : []
  return [words.join(' '), ...stack.map((part) => `  ${part}`)].map((part) => `${visible(part)}\n`).join('')
}

const labels: Record<string, string> = { 40: 'warning:', 50: 'error:', 60: 'fatal:' }
