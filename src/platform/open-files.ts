import { readFileSync } from 'node:fs'

/** The limit of open files of this process, as far as the system says so (proc(5)). Node.js has raised it to the hard one. */
export function maxOpenFiles(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
    return limit === undefined ? Infinity : parseInt(limit, 10)
  } catch {
    return Infinity
  }
}
