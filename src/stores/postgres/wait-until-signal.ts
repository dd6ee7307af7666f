/**
 * How long a statement that is running may go on after a signal. Most statements end in this time,
 * so that their outcome is known.
 */
const graceMs = 250

/** @throws the reason of the signal, if it aborts and the answer does not come within `graceMs` */
export async function waitUntilSignal<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  let startTimer = () => {}
  const interruption = new Promise<never>((_, reject) => {
    startTimer = () => {
      timer = setTimeout(() => reject(signal.reason), graceMs)
    }
  })
  signal.addEventListener('abort', startTimer)
  if (signal.aborted) startTimer()
  try {
    return await Promise.race([answer, interruption])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', startTimer)
  }
}
