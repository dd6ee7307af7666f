/** What many wait for, until it is opened. */
export function gate() {
  const gate = {
    waiting: 0,
    open: () => {},
    wait: (): Promise<undefined> => {
      gate.waiting += 1
      return opened
    },
  }
  const opened = new Promise<undefined>((resolve) => {
    gate.open = () => resolve(undefined)
  })
  return gate
}
