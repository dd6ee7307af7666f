import { unlessSystemError } from './errors.js'

/** Whether this is `localhost` or a loopback address. Looks up no names. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}

/** In Node 20, an optimised `URL.canParse` also rejects `https://plänts.example`. */
export function urlOf(text: string, base?: string): URL | undefined {
  return unlessSystemError(() => new URL(text, base))
}
