const children = new Set()

/** Notes a process that was started, until it is gone. */
export function track(child) {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Ends at once whatever still runs. */
export function killAll() {
  for (const child of children) child.kill('SIGKILL')
}
