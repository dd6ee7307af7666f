import { fstatSync, statSync } from 'node:fs'
import { devNull } from 'node:os'

/** Whether a file descriptor is a terminal. */
export function isTerminal(fd: number): boolean {
  const stats = fstatSync(fd)
  // node:tty brings the whole of node:net, 2 ms that neither a pipe nor /dev/null is worth.
  if (!stats.isCharacterDevice() || stats.rdev === statSync(devNull, { throwIfNoEntry: false })?.rdev) return false
  return process.getBuiltinModule('node:tty').isatty(fd)
}
