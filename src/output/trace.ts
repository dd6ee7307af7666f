import type { Io } from '../platform/io.js'
import { printable } from '../platform/redact.js'
import type { Observer } from '../stores/common/access.js'
import { jsonLine, type OutputStyle } from './output.js'

type TraceStyle = Pick<OutputStyle, 'errors'>
type TracedSetting = Record<'name' | 'fallback' | 'source' | 'place', string> & { value: string | undefined }

/** `fallback` describes the default of a setting without a value. */
export function traceSettings(path: string | undefined, settings: TracedSetting[], style: TraceStyle, io: Io): void {
  trace(io, style, { verbose: 'settings', path }, [`* settings ${path ?? 'not read: this user has no home directory'}`])
  for (const { name, value, fallback, source, place } of settings) {
    trace(io, style, { verbose: 'setting', name, value, source, place }, [`* ${name} ${value ?? fallback} (${place})`])
  }
}

export function traceCredential(noun: 'token' | 'password', place: string, style: TraceStyle, io: Io): void {
  trace(io, style, { verbose: noun, place }, [`* ${noun} from ${place}`])
}

/** Omits the password. */
export function traceProxy(proxy: string, style: TraceStyle, io: Io): void {
  const { host } = new URL(proxy)
  trace(io, style, { verbose: 'proxy', host }, [`* proxy ${host}`])
}

/** Logs requests and responses in curl's notation: `>` was sent, `<` was received. Tokens are redacted. */
export function observerOf(style: TraceStyle, io: Io): Observer {
  const log = (verbose: string, fields: object, ...lines: string[]) => trace(io, style, { verbose, ...fields }, lines)
  return {
    connected: (steps) => {
      const times = Object.entries(steps).map(([step, time]) => `${step === 'tls' ? 'TLS' : step} ${ms(time)}`)
      log('connection', rounded(steps), `* connected: ${times.join(', ')}`)
    },
    sent: ({ method, url, headers, length }) => {
      const shown = { ...headers, ...(headers['authorization'] !== undefined && { authorization: 'Bearer ***' }) }
      log(
        'request',
        { method, address: url, headers: shown, bytes: length },
        ...[`> ${method} ${url}`, ...headerLines('>', shown), `> ${length} bytes`],
      )
    },
    answered: ({ status, headers: distinct }, firstByte) => {
      const headers = Object.fromEntries(
        Object.entries(distinct).map(([name, values]) => [name, values?.length === 1 ? values[0] : values]),
      )
      const times = rounded({ firstByte })
      log('answer', { status, headers, ...times }, `< ${status}`, ...headerLines('<', headers), `* first byte ${ms(firstByte)}`)
    },
    ended: (length, whole) => log('end', { bytes: length, ...rounded({ whole }) }, `< ${length} bytes`, `* whole response ${ms(whole)}`),
    failed: (cause) => {
      const reason = cause instanceof Error ? cause.message : String(cause)
      log('failure', { reason }, `* failed: ${reason}`)
    },
  }
}

function headerLines(sign: string, headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((text) => `${sign} ${name}: ${text}`))
}

/** Does not wait for the write, so that a slow reader of stderr delays nothing and signals still work. */
function trace(io: Io, { errors }: TraceStyle, fields: object, lines: string[]): void {
  const text = errors === 'json' ? jsonLine(fields, io) : lines.map((line) => `${printable(line, io)}\n`).join('')
  void io.stderr.log(text)
}

function ms(time: number): string {
  return `${time.toFixed(1)} ms`
}

function rounded(times: object): object {
  return Object.fromEntries(Object.entries(times).map(([name, time]: [string, number]) => [name, Math.round(time * 10) / 10]))
}
