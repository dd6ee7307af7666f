import { lstatSync, readFileSync } from 'node:fs'
import { systemCode } from '../../platform/errors.js'
import { strangerAt } from '../../platform/files.js'
import { LoginError } from './login-methods.js'

/**
 * Looks at whom a Unix socket belongs to that was connected to: where others can make the one of a server that is away, they would get the
 * password and the plants. PostgreSQL's own account is trusted as well, and a group that may write to the folder, as Debian's may.
 *
 * @param requirePeer the name or number of the only user that it may belong to, as libpq's parameter `requirepeer`
 * @param trusts whether a user is this one, or root
 * @throws {LoginError} and what the system says of a socket that is gone, whoever it was of
 */
export function checkSocketOwner(path: string, requirePeer: string | undefined, trusts: (uid: number) => boolean): void {
  if (process.platform === 'win32') return
  if (requirePeer !== undefined) {
    const { uid } = lstatSync(path)
    const name = nameOf(uid)
    if (requirePeer === name || requirePeer === String(uid)) return
    throw new LoginError(`its socket belongs to ${name ?? `the user ${uid}`}, and requirepeer is ${requirePeer}`)
  }
  const isPostgres = (uid: number) => ['postgres', '_postgres'].includes(nameOf(uid) ?? '')
  const stranger = strangerAt(path, { trusts: (uid) => trusts(uid) || isPostgres(uid), writers: 0o002 })
  if (stranger !== undefined) throw new LoginError(stranger, 'LOGIN_SOCKET')
}

/** The name of a user of this machine; undefined for one that is kept elsewhere. */
function nameOf(uid: number): string | undefined {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
    return lines.map((line) => line.split(':')).find(([, , number]) => number === String(uid))?.[0]
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}
