import type { Observer } from '../stores/http/http-options.js'
import type { Reporter } from './reporter.js'

/** Logs in curl's notation: `>` was sent, `<` was received. */
export function observerOf(reporter: Reporter): Observer {
  const log = (...lines: string[]) => reporter.log(...lines)
  return {
    connected: (time) => log(`* connected after ${ms(time)}`),
    sent: ({ method, url, headers, length }) => {
      const shown = {
        ...headers,
        ...(headers['authorization'] !== undefined && { authorization: 'Bearer ***' }),
      }
      log(`> ${method} ${url}`, ...headerLines('>', shown), `> ${length} bytes`)
    },
    answered: ({ status, headers }, firstByte) =>
      log(`< ${status}`, ...headerLines('<', headers), `* first byte after ${ms(firstByte)}`),
    ended: (length, whole) => log(`< ${length} bytes`, `* whole response after ${ms(whole)}`),
    failed: (cause) => log(`* failed: ${cause instanceof Error ? cause.message : String(cause)}`),
  }
}

function headerLines(
  sign: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((text) => `${sign} ${name}: ${text}`),
  )
}

function ms(time: number): string {
  return `${time.toFixed(1)} ms`
}
