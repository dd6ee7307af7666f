import { existsSync, readdirSync, readFileSync } from 'node:fs'

/**
 * proc(5): the 14th and 15th field, in hundredths of a second on every Linux, all threads together. Not a number
 * elsewhere.
 */
export function processorOf(pid) {
  return secondsOf(pid, 11, 12)
}

/** Of a process with its children, also of those that have ended: the 16th and 17th field. */
export function processorOfFamily(pid) {
  const own = secondsOf(pid, 11, 12, 13, 14)
  return childrenOf(pid).reduce((sum, child) => sum + (processorOf(child) || 0), own)
}

/** kB, by the name that proc(5) has for it. Not a number elsewhere. */
export function memoryOf(pid, field) {
  if (!existsSync(`/proc/${pid}/status`)) return Number.NaN
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1])
}

function secondsOf(pid, ...indices) {
  const fields = fieldsOf(pid)
  return indices.reduce((sum, index) => sum + Number(fields[index]), 0) / 100
}

function childrenOf(pid) {
  if (!existsSync('/proc/self/stat')) return []
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && fieldsOf(name)[1] === String(pid))
}

/** From the 3rd field on: what stands before may hold spaces. A process may end while all are looked at. */
function fieldsOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ')
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return []
    throw error
  }
}
