import { printable } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import type { Observer } from '../stores/common/store.js'
import { jsonLine, type OutputStyle } from './output.js'

/** Logs in curl's notation: `>` was sent, `<` was received. */
export function observerOf(style: OutputStyle, io: Io): Observer {
  const log = (...lines: string[]) => trace(io, style, ...lines)
  return {
    connected: (time) => log(`* connected after ${ms(time)}`),
    sent: ({ method, url, headers, length }) => {
      const shown = { ...headers, ...(headers['authorization'] !== undefined && { authorization: 'Bearer ***' }) }
      log(`> ${method} ${url}`, ...headerLines('>', shown), `> ${length} bytes`)
    },
    answered: ({ status, headers }, firstByte) =>
      log(`< ${status}`, ...headerLines('<', headers), `* first byte after ${ms(firstByte)}`),
    ended: (length, whole) => log(`< ${length} bytes`, `* whole response after ${ms(whole)}`),
    failed: (cause) => log(`* failed: ${cause instanceof Error ? cause.message : String(cause)}`),
  }
}

function headerLines(sign: string, headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((text) => `${sign} ${name}: ${text}`),
  )
}

/** Does not wait for the write, so that a slow reader of stderr delays nothing and signals still work. */
export function trace(io: Io, { errors }: OutputStyle, ...lines: string[]): void {
  const texts = lines.map((line) => (errors === 'json' ? jsonLine({ verbose: line }, io) : `${printable(line, io)}\n`))
  void io.stderr.log(texts.join(''))
}

function ms(time: number): string {
  return `${time.toFixed(1)} ms`
}
