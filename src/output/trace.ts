import type { Io } from '../platform/io.js'
import { jsonLine } from './output.js'
import { shownValue } from '../config/origin.js'
import type { Preferences } from '../config/preferences.js'
import { presetOf } from '../config/table.js'
import type { Observer } from '../stores/store.js'
import { redact } from '../platform/redact.js'
import { visible } from '../platform/escape.js'

type Manner = Pick<Preferences, 'errors'>

/** Tells what a run goes by, and where each value came from. */
export function traceSettings({ file: { path }, origins, errors }: Preferences, io: Io): void {
  const manner = { errors }
  say(io, manner, { verbose: 'settings', path }, [`* settings ${path ?? 'nowhere: there is no home directory'}`])
  for (const { name, value: given, source, place } of origins) {
    const value = shownValue(given)
    say(io, manner, { verbose: 'setting', name, value, source, place }, [`* ${name} ${value ?? presetOf(name)} (${place})`])
  }
}

/** Tells where the token came from. */
export function traceToken(place: string, manner: Manner, io: Io): void {
  say(io, manner, { verbose: 'token', place }, [`* token from ${place}`])
}

/** Tells where the password came from. */
export function tracePassword(place: string, manner: Manner, io: Io): void {
  say(io, manner, { verbose: 'password', place }, [`* password from ${place}`])
}

/** Tells which proxy is asked; its password stays out of it. */
export function traceProxy(proxy: string, manner: Manner, io: Io): void {
  const { host } = new URL(proxy)
  say(io, manner, { verbose: 'proxy', host }, [`* proxy ${host}`])
}

/** Tells each request and each answer, in curl's signs: `>` went out, `<` came in. Tokens are left out. */
export function observerOf(manner: Manner, io: Io): Observer {
  return {
    connected: (steps) => {
      const names = { name: 'name', connect: 'connect', tls: 'TLS', tunnel: 'tunnel' } as const
      const times = Object.entries(steps).map(([step, time]) => `${names[step as keyof typeof names]} ${ms(time)}`) // a Steps has these keys
      say(io, manner, { verbose: 'connection', ...rounded(steps) }, [`* connected: ${times.join(', ')}`])
    },
    sent: ({ method, url, headers, length }) => {
      const shown = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, name === 'authorization' ? 'Bearer ***' : value]),
      )
      const lines = [`> ${method} ${url}`, ...headerLines('>', shown), `> ${length} bytes`]
      say(io, manner, { verbose: 'request', method, address: url, headers: shown, bytes: length }, lines)
    },
    answered: ({ status, headers }, firstByte) => {
      const lines = [`< ${status}`, ...headerLines('<', headers), `* first byte ${ms(firstByte)}`]
      say(io, manner, { verbose: 'answer', status, headers, ...rounded({ firstByte }) }, lines)
    },
    ended: (length, whole) => {
      say(io, manner, { verbose: 'end', bytes: length, ...rounded({ whole }) }, [`< ${length} bytes`, `* whole answer ${ms(whole)}`])
    },
    failed: (cause) => {
      const reason = cause instanceof Error ? cause.message : String(cause)
      say(io, manner, { verbose: 'failure', reason }, [`* failed: ${reason}`])
    },
  }
}

function headerLines(sign: string, headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((text) => `${sign} ${name}: ${text}`))
}

/** Nothing waits for whoever reads it, and signals keep their meaning meanwhile. */
function say(io: Io, { errors }: Manner, fields: object, lines: string[]): void {
  const text = errors === 'json' ? jsonLine(fields, io) : redact(lines.map((line) => `${visible(line)}\n`).join(''), io)
  void io.stderr.log(text)
}

function ms(time: number): string {
  return `${time.toFixed(1)} ms`
}

function rounded(times: object): object {
  return Object.fromEntries(Object.entries(times).map(([name, time]: [string, number]) => [name, Math.round(time * 10) / 10]))
}
