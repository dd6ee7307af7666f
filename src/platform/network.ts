import { systemCode } from './errors.js'

/** Whether a host is this very machine, whatever the network says. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}

/** A URL, or undefined for a text that is none. In Node 20, `URL.canParse` refuses `https://plänts.example`, too, once it is optimised. */
export function urlOf(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch (error) {
    if (systemCode(error) !== 'ERR_INVALID_URL') throw error
    return undefined
  }
}
